"""Which clients' standbys and warm-ups have records to read, and when does a run check whether they caught up?"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.changelogs import known_state
from kafka_rescale.spark.processing.standby_task import works_due

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Probe:
    """Whether to trigger a run only to check whether warm-ups have caught up (KIP-441).

    :param run_id: id of the run, the same for every caller after the same rebalance; empty if no run is needed.
    :param reason: why a run is needed, or why not.
    """

    run_id: str
    reason: str


def due_clients(application: PipelineApplication, connection: KafkaConnection) -> list[str]:
    """Return the clients whose standbys and warm-ups have records to read.

    A client whose ``state.dir`` can't be reached is left out: the next rebalance finds it absent.
    """
    processing = ControlTopic(connection, application.application_id).read().processing
    if processing is None:
        return []
    as_of_ms, pipeline = now_ms(), pipeline_named(application.pipeline)
    known = known_state(ClusterAdmin(connection), application.application_id, pipeline, processing.tasks)
    found = []
    for client in application.members:
        record = processing.client(client.client_id)
        standbys = list(map(TaskId.parse, record.standbys)) if record is not None else []
        try:
            works = works_due(application.application_id, client.state_dir, standbys, known.logs, as_of_ms)
        except OSError as error:
            log.warning("client %s: %s", client.client_id, error)
            continue
        found += [client.client_id] if works else []
    return found


def probe(application: PipelineApplication, connection: KafkaConnection) -> Probe:
    """Return whether to trigger a run. It is due if tasks warm up and the last rebalance is long enough ago.

    The time since the last rebalance has to be ``probing.rebalance.interval.ms`` at least.
    """
    processing = ControlTopic(connection, application.application_id).read().processing
    if processing is None or not processing.assignment.is_probing_rebalance_needed:
        return Probe("", "Nothing warms up: everything is where it should be.")
    interval = application.probing_rebalance_interval_ms
    elapsed = now_ms() - processing.at_ms
    if elapsed < interval:
        due = (interval - elapsed) // 1000
        return Probe("", f"{len(processing.movements)} tasks warm up; a rebalance is due in {due} s.")
    # A run of this name exists only once. If it fails before its rebalance, the next interval has another name.
    return Probe(
        f"probing__{processing.at_ms + elapsed // interval * interval}",
        f"{len(processing.movements)} tasks warm up, and {interval // 1000} s are over since the last rebalance.",
    )
