"""The operators and sensors in DAGs of one's own, which have neither our default arguments nor our task ids."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, ExceptionRetryPolicy
from kafka_rescale.airflow.operators.client_job import ClientJobOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.retries import APPROVAL_RETRY_POLICY, RETRY_POLICY
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor

OTHER_POLICY = ExceptionRetryPolicy(rules=[])
OF_AIRFLOW = {
    "OptionalApprovalOperator": {"subject": "?"},
    "MemberExpansionOperator": {"trigger_dag_id": "expand_a"},
}
"""What classes of Airflow require, by the class that is made from them."""
TAKE_A_JOB = (RescaleSparkSubmitOperator, ClientJobOperator)


def classes() -> Iterator[type[BaseOperator]]:
    """Yield every operator and sensor of the reference."""
    for package in ("operators", "sensors"):
        path = f"kafka_rescale.airflow.{package}"
        for module in pkgutil.iter_modules(import_module(path).__path__):
            for _, found in inspect.getmembers(import_module(f"{path}.{module.name}"), inspect.isclass):
                if found.__module__ == f"{path}.{module.name}" and issubclass(found, BaseOperator):
                    yield found


def made(found: type[BaseOperator]) -> BaseOperator:
    """Make a task of a class, with a text for each argument that it requires."""
    ours = [
        base for base in found.__mro__ if base.__module__.startswith("kafka_rescale") and "__init__" in vars(base)
    ]
    parameters = [
        p for base in ours for p in inspect.signature(inspect.unwrap(vars(base)["__init__"])).parameters.values()
    ]
    taken: dict[str, Any] = {p.name: "1" for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    if found not in TAKE_A_JOB:
        taken.pop("job", None)
    for base in found.__mro__:
        taken |= OF_AIRFLOW.get(base.__name__, {})
    return found(task_id="t", **taken)


@pytest.mark.parametrize("found", classes(), ids=lambda found: found.__name__)
def test_what_needs_a_person_is_not_tried_again(found: type[BaseOperator]) -> None:
    assert made(found).retry_policy in {RETRY_POLICY, APPROVAL_RETRY_POLICY}


def test_a_policy_of_the_dag_stays() -> None:
    with DAG("own", schedule=None, default_args={"retry_policy": OTHER_POLICY}):
        task = LagGateSensor(task_id="gate", application_id="a", kafka_config_id="k", acceptable_lag=1)
    assert task.retry_policy is OTHER_POLICY
