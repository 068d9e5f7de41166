"""Which failures Airflow retries: outages. It does not retry a failure that needs a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTriggerEventError
from airflow.sdk import BaseOperator, ExceptionRetryPolicy, RetryAction, RetryRule

from kafka_rescale.core.errors import Fenced, InvalidInput, Outage, Refused, Unreadable, UnsafeState

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=UnsafeState, action=RetryAction.FAIL, reason="unsafe state: a person has to look"),
        RetryRule(exception=Refused, action=RetryAction.FAIL, reason="refused: nothing changes by itself"),
        RetryRule(exception=Unreadable, action=RetryAction.RETRY, reason="the file may be there again soon"),
        RetryRule(
            exception=InvalidInput, action=RetryAction.FAIL, reason="a person has to correct the input first"
        ),
        RetryRule(exception=Fenced, action=RetryAction.FAIL, reason="a newer attempt has taken over"),
        RetryRule(exception=Outage, action=RetryAction.RETRY, reason="an outage may pass"),
    ]
)

APPROVAL_RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception=[HITLRejectException, HITLTriggerEventError], action=RetryAction.FAIL, reason="answered"
        ),
        *RETRY_POLICY.rules,
    ]
)
"""A person's answer is final, and the task itself waits until it can be noted. After any other failure the task
asks again. Airflow 3.3 fails a task if the answer comes within a second, before the executor has reported that the
task is deferred."""


def set_retry_policy(task: BaseOperator) -> None:
    """Give a task the policy, unless it has one. ``DEFAULT_ARGS`` reaches only the tasks of our own DAGs.

    :param task: An operator or sensor whose base has been initialized with the arguments of its DAG.
    """
    if task.retry_policy is None:
        task.retry_policy = RETRY_POLICY


DEFAULT_ARGS: dict[str, Any] = {
    "owner": "kafka-rescale",
    "retries": 2,
    "retry_delay": timedelta(seconds=10),
    "retry_policy": RETRY_POLICY,
    # Airflow's `[core] default_task_execution_timeout` would end jobs that last for days, and interrupt a pause.
    "execution_timeout": None,
    # Airflow's default rule adds up the weights of all downstream tasks, so the first task of a run would come
    # before the last.
    "weight_rule": "absolute",
}

FIRST_IN_LINE: dict[str, Any] = {"priority_weight": 1000, "weight_rule": "absolute"}
"""For tasks that begin or end a pause. In a busy Airflow they get the next free slot."""

_CLOSE_TOGETHER: dict[str, Any] = {
    "retry_delay": timedelta(seconds=5),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=1),
}

THROUGH_AN_OUTAGE: dict[str, Any] = {**_CLOSE_TOGETHER, "retries": 6}
"""For tasks after a pause. Brokers that are away for some minutes then don't fail the run."""

UNTIL_A_GENERATION_RUNS: dict[str, Any] = {**FIRST_IN_LINE, **_CLOSE_TOGETHER, "retries": 12}
"""For tasks that end a pause. After an outage of minutes a generation must run again, so Airflow retries these
tasks for about ten minutes.

The retry policy still fails at once if the failure needs a person."""
