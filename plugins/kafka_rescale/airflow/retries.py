"""Which failures are worth a retry: outages are, anything that needs a person is not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTriggerEventError
from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from kafka_rescale.core.errors import Fenced, InvalidInput, Outage, Refused, UnsafeState

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=UnsafeState, action=RetryAction.FAIL, reason="unsafe state: a person has to look"),
        RetryRule(exception=Refused, action=RetryAction.FAIL, reason="refused: nothing changes by itself"),
        RetryRule(exception=InvalidInput, action=RetryAction.FAIL, reason="the input has to be mended first"),
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
"""An answer is final. Other failures ask again: Airflow 3.3 fails a task that is answered within a second of
asking, before the executor has reported that it is parked."""

DEFAULT_ARGS: dict[str, Any] = {
    "owner": "kafka-rescale",
    "retries": 2,
    "retry_delay": timedelta(seconds=10),
    "retry_policy": RETRY_POLICY,
    # Airflow's own rule adds up all that comes behind a task: the first task of a run would go before the last.
    "weight_rule": "absolute",
}

FIRST_IN_LINE: dict[str, Any] = {"priority_weight": 1000, "weight_rule": "absolute"}
"""For tasks without which a pause doesn't begin or end: in a busy Airflow they get the next slot that is free."""

_CLOSE_TOGETHER: dict[str, Any] = {
    "retry_delay": timedelta(seconds=5),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=1),
}

THROUGH_AN_OUTAGE: dict[str, Any] = {**_CLOSE_TOGETHER, "retries": 6}
"""For tasks behind a pause: brokers that are away for some minutes don't fail the run."""

UNTIL_SOMEBODY_RUNS: dict[str, Any] = {**FIRST_IN_LINE, **_CLOSE_TOGETHER, "retries": 12}
"""For tasks that end a pause: an outage of minutes must not leave nobody running, so they go on for about ten.

The policy still fails what needs a person at once."""
