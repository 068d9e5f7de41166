"""Which clients' standbys and warm-ups have records to read, and when does a run check whether they caught up?"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.request import KeepWarmRequest
from kafka_rescale.core.processing.run_end import SILENT_SECONDS
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, within
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.changelogs import known_state
from kafka_rescale.spark.processing.standby_task import works_due

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""Time between two looks for a sign of life. A job at work gives one every few seconds (``Job.run_beside``)."""


@dataclass(frozen=True)
class Probe:
    """Whether to trigger a run only to check whether warm-ups have caught up (KIP-441).

    :param run_id: id of the run, the same for every caller within one interval after the same rebalance; empty if
        no run is needed.
    :param reason: why a run is needed, or why not.
    """

    run_id: str
    reason: str


def due_clients(
    application: PipelineApplication, connection: KafkaConnection, silent_seconds: float = SILENT_SECONDS
) -> list[str]:
    """Return the clients whose standbys and warm-ups have records to read, and for which no job is at work.

    A client whose ``state.dir`` can't be reached is left out: the next rebalance finds it absent.

    :param silent_seconds: a job that gives no sign of life for so long counts as killed.
    """
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    if (processing := state.processing) is None:
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
    running = {result.job for result in state.results.values() if result.state == "running"}
    begun = {client: job for client in found if (job := f"{KeepWarmRequest.job}/{client}") in running}
    at_work = _at_work(control, begun, silent_seconds)
    if at_work:
        log.info("left out, as their jobs are at work: %s", ", ".join(sorted(at_work)))
    return [client for client in found if client not in at_work]


def _at_work(control: ControlTopic, jobs: Mapping[str, str], silent_seconds: float) -> set[str]:
    """Return the clients whose jobs give a sign of life while this looks.

    The times in a result are those of its driver. This measures with its own clock only, because clocks of two
    machines are never compared.

    :param jobs: by client, the job that may be at work for it. If there is none, this does not wait.
    """
    at_work = set[str]()
    if not jobs:
        return at_work
    with control.follow() as follower:
        before, left = {client: follower.heard(job)[0] for client, job in jobs.items()}, within(silent_seconds)
        while jobs.keys() - at_work and left() > 0:
            time.sleep(PAUSE_SECONDS)
            at_work |= {client for client, job in jobs.items() if follower.heard(job)[0] != before[client]}
    return at_work


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
