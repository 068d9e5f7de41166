"""The names that are stored outside this program, or that users type. No such name may change by accident."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.operations.application.load import load_application, topology_of
from pydantic import BaseModel

from tests.support.house.documents import ROOT
from tests.support.house.sources import parsed_file

PACKAGE = ROOT / "plugins" / "kafka_rescale"
LAYERS = ("airflow", "cli", "core", "kafka", "lifecycle", "operations", "spark", "web")
STORED = re.compile(r"_?kafka[-_]rescale[\w{}/-]*|KAFKA_RESCALE_\w+")
HOLE = "{}"
XCOM = {"xcom_push", "xcom_pull"}


def names() -> dict[str, Any]:
    """Return all these names by kind, as values for JSON."""
    plan = flights_plan()
    return {
        "control topic": CONTROL_TOPIC,
        "concerns": [concern.value for concern in Concern],
        "records": {name: shape(of.annotation) for name, of in ControlState.model_fields.items()},
        "report": shape(Report),
        "proof": shape(Proof),
        "rolling proof": shape(RollingProof),
        "topics": {move.source: move.target for move in plan.moves},
        "groups": [plan.copy_group, plan.bridge_group, gate_group(plan.green)],
        "transactional ids": [
            unit.transactional_id(plan.green) for unit in units_of(plan.moves) if not unit.partition
        ],
        "in the source": sorted(set(_stored())),
        "xcom keys": sorted(set(_xcom_keys())),
        "dags": dict(_dags()),
        "commands": dict(_commands()),
        "spark jobs": sorted(file.name for file in (ROOT / "spark_jobs").glob("*.py")),
        "triggers": _triggers(),
    }


def flights_plan() -> Plan:
    """Return the plan of the demo's first expansion, from 4 partitions to 8."""
    application = load_application(ROOT / "applications" / "flights.yaml")
    topology = topology_of(application)
    internal = [application.application_id + "-" + topic for topic in topology.repartitions]
    internal += [f"{application.application_id}-{store}-changelog" for store in topology.stores]
    declared = [i.topic for i in application.inputs] + [o.topic for o in application.outputs]
    current = dict.fromkeys([*internal, *topology.repartitions, *declared], 4)
    blue = application.application_id
    return build_plan(application, topology, blue=blue, generation=2, current=current, target=8)


def shape(kind: Any) -> Any:
    """Return the fields of a model or the values of an enumeration, with all that is nested in them."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: shape(of.annotation) for name, of in kind.model_fields.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.value for member in kind]
    found = [inner for argument in get_args(kind) if (inner := shape(argument))]
    return found[0] if len(found) == 1 else found


def _trees() -> Iterator[ast.Module]:
    for layer in LAYERS:
        for file in (PACKAGE / layer).rglob("*.py"):
            yield parsed_file(file)


def _texts() -> Iterator[str]:
    """Yield the strings of the product. In an f-string, each value is replaced by ``HOLE``."""
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else HOLE for p in node.values)


def _stored() -> Iterator[str]:
    return (text for text in _texts() if STORED.fullmatch(text))


def _xcom_keys() -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for tree in _trees()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.endswith("_KEY")
    }
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in XCOM:
                key = next((k.value for k in node.keywords if k.arg == "key"), None)
                if isinstance(key, ast.Constant):
                    yield str(key.value)
                elif isinstance(key, ast.Name) and key.id.isupper():  # a parameter is no name
                    yield str(constants[key.id])
    for text in _texts():
        yield from re.findall(r"xcom_pull\([^)]*key='(\w+)'", text)


def _dags() -> Iterator[tuple[str, Any]]:
    from scripts.reference_of_dags import _example_dags

    for title, dag in _example_dags():
        yield (
            title,
            {
                "tasks": sorted(task.task_id for task in dag.tasks),
                "params": sorted(dag.params),
                "edges": {task.task_id: edges(task) for task in dag.tasks},
            },
        )


def edges(task: Any) -> dict[str, Any]:
    """Return what decides when a task begins: the tasks before it, the trigger rule, retries and priority."""
    return {
        "waits for": ", ".join(sorted(task.upstream_task_ids)),
        "rule": task.trigger_rule.value,
        "retries": task.retries,
        "retry delay": task.retry_delay.total_seconds(),
        "priority": task.priority_weight,
    }


def _commands() -> Iterator[tuple[str, list[str]]]:
    from kafka_rescale.cli.app import app
    from typer.main import get_command

    root: Any = get_command(app)
    for name, command in root.commands.items():
        yield name, sorted(option for parameter in command.params for option in parameter.opts)


def _triggers() -> list[str]:
    from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
    from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger

    return [f"{each.__module__}.{each.__qualname__}" for each in (LagGateTrigger, PauseAlertTrigger)]


def recorded(name: str) -> Path:
    """Return a file of ``tests/data``."""
    return ROOT / "tests" / "data" / name
