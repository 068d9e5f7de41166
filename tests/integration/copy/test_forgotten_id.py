"""A transactional id that brokers have forgotten, because nothing was committed with it for long."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.ended import LOOK_SECONDS, EndedCopies
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import read_positions
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import closing_consumer

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import changelog, create, ends_of, plan_of, read, records, write

pytestmark = pytest.mark.integration

FORGETFUL = {
    "transactional.id.expiration.ms": "2000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """A connection to a broker that forgets a transactional id after two seconds instead of a week."""
    directory = tmp_path_factory.mktemp("forgetful")
    with EmbeddedBroker(directory, heap="256m", properties=FORGETFUL) as running:
        yield KafkaConnection(running.client_config())


@pytest.mark.parametrize("is_taken", [False, True], ids=["forgotten", "taken by a newer worker"])
def test_the_worker_goes_on_unless_a_newer_one_has_taken_it(
    forgetful: KafkaConnection, unique: str, *, is_taken: bool
) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(forgetful, plan)
    worker = CopyWorker(forgetful, plan, units_of([move]), LIVE)
    worker.begin()
    worker.announce("waits")
    time.sleep(6)
    write(forgetful, move, records(20))
    if is_taken:
        newer = CopyWorker(forgetful, plan, units_of([move]), LIVE)
        newer.begin()
        newer.announce("newer")
        with pytest.raises(Fenced):
            worker.run_to(ends_of(forgetful, move), now_ms())
        newer.close()
    else:
        worker.run_to(ends_of(forgetful, move), now_ms())
        assert sum(map(len, read(forgetful, move.target).values())) == 20
    worker.close()


def test_positions_of_an_ended_task_are_committed_again_as_they_were(
    forgetful: KafkaConnection, unique: str
) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan, units, seconds = plan_of(unique, move), units_of([move]), [0.0]
    create(forgetful, plan)
    write(forgetful, move, records(20))
    worker, ends = CopyWorker(forgetful, plan, units, LIVE), ends_of(forgetful, move)
    worker.begin()
    worker.run_to(ends, now_ms())
    with closing_consumer(forgetful, plan.copy_group) as consumer:
        before = read_positions(consumer, ends)
        copies = EndedCopies(forgetful, plan, [units], ends, lambda: seconds[0])
        for _ in range(2):
            seconds[0] += LOOK_SECONDS
            copies.keep()
        assert read_positions(consumer, ends) == before
    write(forgetful, move, records(20))
    with pytest.raises(Fenced):
        worker.run_to(ends_of(forgetful, move), now_ms())
    worker.close()
