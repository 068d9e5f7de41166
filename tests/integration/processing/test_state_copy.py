"""What a processor has deleted is never in the state of a new processor, however often the copy breaks off."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.state_copies import POSITION_GONE, NewTask
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing import state_copy
from kafka_rescale.kafka.processing.state_copy import StateCopy
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.operations.processing.processors import expand_processors
from kafka_rescale.spark.processing.work import expansion_of

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import INITIAL, Growing
from tests.support.processing.growing_load import T0, write

pytestmark = pytest.mark.integration
DAY_MS = 24 * 3600 * 1000
NOW = 1_800_000_000_000


@pytest.fixture
def live(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Growing:
    """An application whose two processors shall become four. Nothing is warm yet."""
    application = Growing(KafkaConnection(broker.client_config()), unique, tmp_path, inline=True)
    application.create(8)
    write(application.connection, unique, 8, range(200))
    application.run()
    expand_processors(application.application, application.connection, 4)
    application.assign()
    return application


def new_task(live: Growing) -> NewTask:
    name, record = live.application.application_id, live.control.read().processors
    pipeline = pipeline_named(live.application.pipeline)
    return expansion_of(name, pipeline, live.connection, record, 0)[0][0]


def passed(live: Growing, at_ms: int, *, seconds: float = 60, ends_at_ms: int | None = None) -> str:
    """Make one pass of the copy at a given time, and return the objection to continuing it afterwards."""
    times = iter([at_ms])
    copy = StateCopy(live.connection, new_task(live), lambda: next(times, ends_at_ms or at_ms))
    try:
        copy.to_the_end(is_final=False, seconds=seconds)
        return next(iter(copy.positions().values())).objection
    finally:
        copy.close()


def copied_long_ago(live: Growing) -> bytes:
    """Put a key into the new processor's changelog.

    Its parent has deleted it since, and compaction has removed it there.
    """
    hashing = LinearHashing(INITIAL)
    key = next(k for n in range(1000) if hashing.partition(k := b"gone%d" % n, 4) == 2)
    task = new_task(live)
    producer = TaskProducer(live.connection, task.transactional_id(task.task))
    with producer.transaction():
        producer.produce(live.changelog, b"1", key, 2, timestamp=T0)
    producer._producer.commit_transaction()
    return key


def test_a_pass_that_breaks_off_makes_the_copy_no_younger(live: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_copy, "BATCH", 10)
    assert passed(live, NOW, seconds=0) == ""
    assert passed(live, NOW + DAY_MS - 1, seconds=0) == ""
    key = copied_long_ago(live)
    assert passed(live, NOW + DAY_MS) == ""
    assert key not in live.state()[2]
    assert passed(live, NOW + 2 * DAY_MS - 1) == "", "it was whole a day ago"


def test_a_copy_whose_position_is_lost_keeps_nothing_that_was_deleted(live: Growing) -> None:
    assert passed(live, NOW) == ""
    key = copied_long_ago(live)
    live.admin.delete_group(new_task(live).group)
    copy = StateCopy(live.connection, new_task(live))
    assert [found.objection for found in copy.positions().values()] == [POSITION_GONE]
    copy.close()
    before = live.state()[0]
    assert passed(live, NOW) == ""
    owners = LinearHashing(INITIAL)
    assert live.state()[2].keys() == {k for k in before if owners.partition(k, 4) == 2}
    assert key not in live.state()[2]


def test_a_changelog_that_is_read_too_slowly_is_refused_and_no_transaction_waits_for_that(
    live: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_long_ago(live)
    monkeypatch.setattr(state_copy, "BATCH", 10)
    monkeypatch.setattr(state_copy, "COMMIT_SECONDS", 0.0)
    commits, commit = [], TaskProducer.commit
    monkeypatch.setattr(TaskProducer, "commit", lambda *said: (commits.append(said), commit(*said)))
    with pytest.raises(UnsafeState, match=r"ms to read it.*delete.retention.ms"):
        passed(live, NOW, ends_at_ms=NOW + DAY_MS)
    assert len(commits) > len(live.state()[0]) / 10 > 2
