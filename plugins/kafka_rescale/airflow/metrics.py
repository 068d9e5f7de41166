"""Metrics through Airflow's own stats: StatsD, Datadog or OpenTelemetry, as Airflow is configured.

Airflow has two stats modules. Tasks initialise the module of the SDK, triggers the module of the core. A
metric that is sent to the module that the process has not initialised is silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from airflow.observability import stats as stats_of_triggers
from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication
    from kafka_rescale.core.application.streams import Application
    from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
    from kafka_rescale.core.control.processing import Processing
    from kafka_rescale.core.expansion.lag import GateDecision


def report(
    application: Application | PipelineApplication, parallelism: Iterable[Parallelism], record: Autoscaling
) -> None:
    """Report the metrics of KIP-878 from what the watch, or a run of a pipeline, has seen.

    The ids are in the names as well as in the tags, because plain StatsD drops tags. KIP-878 has metrics that
    exist only while autoscaling is enabled; these are reported only then.
    """
    name, enabled = application.application_id, application.autoscaling_enabled
    for each in parallelism:
        tags = {"application-id": name, "subtopology-id": str(each.subtopology)}
        group = f"stream-subtopology-metrics.{name}.{each.subtopology}"
        stats.gauge(f"{group}.current-subtopology-parallelism", each.current, tags=tags)
        if enabled:
            stats.gauge(f"{group}.expected-subtopology-parallelism", each.expected, tags=tags)
    if enabled:
        client = f"stream-client-metrics.{name}.num-autoscaling-failures"
        stats.gauge(client, record.failures, tags={"client-id": name})


def report_failed_threads(processing: Processing) -> None:
    """Report how many threads of each client of a pipeline have died of an error (KIP-663). Tasks call this."""
    for client in processing.clients:
        name = f"stream-metrics.{client.client_id}.failed-stream-threads"
        stats.gauge(name, client.failed_stream_threads, tags={"client-id": client.client_id})


def report_downtime(application: str, timings: Mapping[str, float]) -> None:
    """Report the parts of a pause that has ended. Tasks call this.

    :param timings: Seconds of each part; one of the parts is ``total``.
    """
    for part, seconds in timings.items():
        name = f"kafka-rescale.{application}.downtime-seconds.{part}"
        stats.gauge(name, seconds, tags={"application-id": application, "part": part})


def report_pause_so_far(application: str, seconds: float) -> None:
    """Report how long a pause has lasted so far. Triggers call this.

    :param seconds: Length of the pause, 0 while there is no pause.
    """
    name = f"kafka-rescale.{application}.pause-seconds"
    stats_of_triggers.gauge(name, seconds, tags={"application-id": application})


def report_lag(application: str, gate: str, decision: GateDecision, *, by_task: bool = False) -> None:
    """Report what a lag gate has measured.

    :param gate: Name of the gate, ``lag_gate/<stage>`` or ``gate_all``.
    :param by_task: Whether a task has measured it; otherwise a trigger has.
    """
    to = stats if by_task else stats_of_triggers
    tags = {"application-id": application, "gate": gate}
    group = f"kafka-rescale.{application}.{gate.replace('/', '.')}"
    to.gauge(f"{group}.partitions-behind", len(decision.holding), tags=tags)
    if known := [each.lag for each in decision.lags if each.lag is not None]:
        to.gauge(f"{group}.largest-lag", max(known), tags=tags)
