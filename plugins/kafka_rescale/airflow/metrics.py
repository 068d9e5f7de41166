"""KIP-878's metrics, through Airflow's own stats: StatsD, Datadog or OpenTelemetry, whichever it is set up for."""

from __future__ import annotations

from airflow.sdk.observability import stats

from kafka_rescale.core.application import Application
from kafka_rescale.core.autoscaling_record import Autoscaling
from kafka_rescale.core.parallelism import Observed


def report(application: Application, observed: Observed, record: Autoscaling) -> None:
    """Report what was seen.

    Names carry the ids as well as the tags do, because plain StatsD drops tags. What Streams was to report only
    with the feature on is reported only then.
    """
    name, enabled = application.application_id, application.autoscaling_enabled
    for each in observed.parallelism:
        tags = {"application-id": name, "subtopology-id": str(each.subtopology)}
        group = f"stream-subtopology-metrics.{name}.{each.subtopology}"
        stats.gauge(f"{group}.current-subtopology-parallelism", each.current, tags=tags)
        if enabled:
            stats.gauge(f"{group}.expected-subtopology-parallelism", each.expected, tags=tags)
    if enabled:
        client = f"stream-client-metrics.{name}.num-autoscaling-failures"
        stats.gauge(client, record.failures, tags={"client-id": name})
