"""Metrics through Airflow's own stats: StatsD, Datadog or OpenTelemetry, whichever it is set up for.

Airflow has its stats twice, each initialised in its own processes: tasks have the SDK's, triggers the core's. What
goes to the other one is silently dropped.
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
    """Report what the watch, or a run of a pipeline, has seen: the metrics of KIP-878.

    Names carry the ids as well as the tags do, because plain StatsD drops tags. What Streams was to report only
    with the feature on is reported only then.
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
    """Report how many threads of each client of a pipeline have died of an error (KIP-663), from a task."""
    for client in processing.clients:
        name = f"stream-metrics.{client.client_id}.failed-stream-threads"
        stats.gauge(name, client.failed_stream_threads, tags={"client-id": client.client_id})


def report_downtime(application: str, timings: Mapping[str, float]) -> None:
    """Report the parts of a pause that has ended, from a task.

    :param timings: seconds by part; ``total`` among them.
    """
    for part, seconds in timings.items():
        name = f"kafka-rescale.{application}.downtime-seconds.{part}"
        stats.gauge(name, seconds, tags={"application-id": application, "part": part})


def report_pause_so_far(application: str, seconds: float) -> None:
    """Report how long a pause lasts by now, from a trigger.

    :param seconds: 0 while there is none.
    """
    name = f"kafka-rescale.{application}.pause-seconds"
    stats_of_triggers.gauge(name, seconds, tags={"application-id": application})


def report_lag(application: str, gate: str, decision: GateDecision) -> None:
    """Report what a lag gate has measured, from a trigger.

    :param gate: its name beside the jobs, ``lag_gate/<stage>`` or ``gate_all``.
    """
    tags = {"application-id": application, "gate": gate}
    group = f"kafka-rescale.{application}.{gate.replace('/', '.')}"
    stats_of_triggers.gauge(f"{group}.partitions-behind", len(decision.holding), tags=tags)
    if known := [each.lag for each in decision.lags if each.lag is not None]:
        stats_of_triggers.gauge(f"{group}.largest-lag", max(known), tags=tags)
