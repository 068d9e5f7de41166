"""An expansion whose copies are close to the ends, as they are when a proof begins."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of

from tests.integration.copy_helpers import ends_of
from tests.integration.spark_job_helpers import begin
from tests.support.changelogs import write_log
from tests.support.expansion.expanded import AFTER, BEFORE, STORES, WINDOWED, Expanded

HOUR_MS = 3_600_000


def copy_of_two_stores(client: Mapping[str, str], unique: str) -> Expanded:
    """Write two stores, begin an expansion, and copy the stores."""
    expanded = Expanded(client, unique, int(time.time() * 1000) - HOUR_MS)
    for store in STORES:
        config = WINDOWED if store == "sessions" else {"cleanup.policy": "compact"}
        blue = expanded.topic(expanded.application, store)
        write_log(client, blue, BEFORE, expanded.blue_records(store), transactional=True, config=config)
        ClusterAdmin(expanded.connection).ensure_topic(expanded.topic(expanded.green, store), AFTER, 1, config)
    begin(expanded.connection, expanded.plan)
    copy(expanded)
    return expanded


def copy(expanded: Expanded) -> None:
    """Copy up to the present ends, as a task of warm_up does."""
    moves = expanded.plan.changelogs
    worker = CopyWorker(expanded.connection, expanded.plan, units_of(moves))
    try:
        worker.begin()
        worker.run_to(ends_of(expanded.connection, *moves), now_ms())
        worker.announce("a test")
    finally:
        worker.close()


def journal_of(expanded: Expanded) -> Journal:
    """The journal in the control topic."""
    journal = expanded.control.read().journal
    assert journal is not None
    return journal
