"""Reports every metric once. The code and its setup are those of a task or a trigger in Airflow.

It runs as a program, so that Airflow's stats are configured for it alone. The test gives the tasks and triggers
what they would have seen. Everything after that is their own code.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from airflow.configuration import conf
from airflow.observability import stats as core_stats
from airflow.observability.metrics import stats_utils as core_utils
from airflow.sdk.observability import stats as sdk_stats
from airflow.sdk.observability.metrics import stats_utils as sdk_utils
from kafka_rescale.airflow.lag_gate import GateReason, Reading
from kafka_rescale.airflow.operators.cutover import CutoverOperator
from kafka_rescale.airflow.operators.watch import WatchOperator
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger
from kafka_rescale.core.autoscaling.decision import Decision, Outcome
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.expansion.lag import GateDecision, PartitionLag
from kafka_rescale.core.expansion.pause_alert import PauseReading, PauseState
from kafka_rescale.operations.watch import Watched
from opentelemetry.metrics import get_meter_provider

from tests.support.small_application import write

OBSERVED = Observed("shop", {}, parallelism=(Parallelism(0, 4, 8),))
LAGS = GateDecision((PartitionLag("t", 0, None), PartitionLag("t", 1, 70), PartitionLag("t", 2, 5)), threshold=10)
TIMINGS = {"drain": 1.25, "total": 4.5}


def in_tasks(file: Path) -> None:
    """Run a look of the watch, and a cutover."""
    legacy = conf.getboolean("metrics", "legacy_names_on")
    sdk_stats.initialize(factory=sdk_utils.get_stats_factory(), export_legacy_names=legacy)
    ti = SimpleNamespace(try_number=1, xcom_push=lambda **_: None)
    task = SimpleNamespace(get_flat_relatives=lambda upstream: [])
    context: Any = {"dag_run": SimpleNamespace(dag_id="watch_shop", run_id="r"), "ti": ti, "task": task}
    watched = Watched(OBSERVED, Decision(Outcome.IN_LINE, "why", Autoscaling(failures=3)))
    with (
        patch("kafka_rescale.operations.watch.watch", return_value=watched),
        patch.object(WatchOperator, "connection"),
        patch.object(WatchOperator, "skip"),
    ):
        WatchOperator(task_id="watch", application_file=str(file)).execute(context)
    with (
        patch("kafka_rescale.operations.cutover.cutover.run_cutover", return_value=TIMINGS),
        patch.object(CutoverOperator, "connection"),
    ):
        CutoverOperator(task_id="cutover", application_file=str(file)).execute(context)


def in_triggers() -> None:
    """Run a reading of a lag gate, and a reading of the pause."""
    legacy = conf.getboolean("metrics", "legacy_names_on")
    core_stats.initialize(factory=core_utils.get_stats_factory(), export_legacy_names=legacy)
    gate = {"application": "shop", "owner": "o", "threshold": 10, "stage": 1}
    reading = Reading(GateReason.REFUSED, LAGS)
    late = PauseReading(PauseState.LATE, 75.5, "quiescing")
    with patch.object(LagGateTrigger, "_look", return_value=(reading, True)):
        asyncio.run(_first(LagGateTrigger(kafka_config_id="k", gate=gate)))
    with patch.object(PauseAlertTrigger, "_look", return_value=late):
        trigger = PauseAlertTrigger(kafka_config_id="k", application_id="shop", owner="o", limit_seconds=60)
        asyncio.run(_first(trigger))


async def _first(trigger: LagGateTrigger | PauseAlertTrigger) -> None:
    async for _ in trigger.run():
        return


def main(directory: Path) -> None:
    """Report. What is still buffered is sent when the process ends."""
    in_tasks(write(directory, "shop", **{"partition.autoscaling.enabled": True}))
    _flush()
    in_triggers()


def _flush() -> None:
    """Send what is buffered. In one process, the setup of triggers would replace the setup of tasks."""
    if (flush := getattr(get_meter_provider(), "force_flush", None)) is not None:
        flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
