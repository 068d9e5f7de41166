"""A key's records in its old partition come before those in its new one, whenever its producer learns of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.grown_ends import Holds
from kafka_rescale.operations.processing import processors
from kafka_rescale.operations.processing.new_offset import set_offset
from kafka_rescale.spark.processing import stream_task

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import Growing
from tests.support.processing.growing_load import T0
from tests.support.processing.inline_jobs import run_all

pytestmark = pytest.mark.integration
HASHING = LinearHashing(2)
KEY = next(
    k for k in (b"k%d" % n for n in range(99)) if (HASHING.partition(k, 2), HASHING.partition(k, 4)) == (0, 2)
)
KEPT = next(k for k in (b"k%d" % n for n in range(99)) if HASHING.partition(k, 4) == 0)


@pytest.fixture
def live(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Growing:
    growing = Growing(KafkaConnection(broker.client_config()), unique, tmp_path, inline=True, settle_ms=600_000)
    growing.create()
    write(growing, [(0, KEY, b"first", 500)])
    growing.run()
    return growing


def write(growing: Growing, records: Iterable[tuple[int, bytes, bytes, int]]) -> None:
    """Write records one after the other. A record is partition, key, value and ms after ``T0``."""
    producer = Producer(growing.connection.client())
    for partition, key, value, at in records:
        producer.produce(growing.topic, value, key, partition, timestamp=T0 + at)
        assert producer.flush(30) == 0


def written_by_a_producer_that_learns_late(growing: Growing) -> None:
    """Write as a producer that first uses the old partition after the growth, and then the new one.

    The record in the new partition has an early time.
    """
    growing.admin.grow_topic(growing.topic, 4)
    write(growing, [(0, KEY, b"stale", 900), (0, KEY, b"stale too", 700), (2, KEY, b"moved", 100)])


def folds(*values: bytes) -> list[bytes]:
    """The results of the pipeline for values in this order."""
    found, digest = [], 0
    for number, value in enumerate(values, start=1):
        digest = zlib.crc32(value, digest)
        found.append(b"%d:%08x" % (number, digest))
    return found


IN_ORDER = folds(b"first", b"stale", b"stale too", b"moved")


def results(growing: Growing) -> list[bytes]:
    return [value for value, *_ in growing.outputs()[KEY]]


def test_records_that_were_written_before_the_producer_knew_come_first(live: Growing) -> None:
    written_by_a_producer_that_learns_late(live)
    live.run()
    assert results(live) == IN_ORDER


def by_timestamps(live: Growing) -> Callable[..., Holds]:
    return lambda *_: {}


def by_the_ends_at_the_growth(live: Growing) -> Callable[..., Holds]:
    (end,) = (end for p, end in live.admin.end_offsets([live.topic])[live.topic].items() if p == 0)
    return lambda _, __, positions, *___: (
        {(live.topic, 2): {(live.topic, 0): end}} if end > positions[live.topic, 0] else {}
    )


@pytest.mark.parametrize("wrong", [by_timestamps, by_the_ends_at_the_growth])
def test_neither_timestamps_nor_the_ends_at_the_growth_keep_a_key_in_order(
    live: Growing, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Growing], Callable[..., Holds]]
) -> None:
    monkeypatch.setattr(stream_task, "holds", wrong(live))
    written_by_a_producer_that_learns_late(live)
    live.run()
    assert results(live) != IN_ORDER
    assert len(results(live)) == len(IN_ORDER)


def test_an_input_that_is_not_placed_by_linear_hashing_is_refused_by_the_first_key(live: Growing) -> None:
    live.admin.grow_topic(live.topic, 3)
    key = next(k for k in (b"m%d" % n for n in range(99)) if Murmur2().partition(k, 3) != HASHING.partition(k, 3))
    write(live, [(Murmur2().partition(key, 3), key, b"v", 1_000)])
    with pytest.raises(UnsafeState, match=f"key 0x{key.hex()}"):
        live.run()
    assert live.control.read().processors.topics[live.topic].partitions == 2, "nothing was changed"


def test_what_the_sample_has_missed_stops_the_task_that_reads_it(
    live: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "_check_samples", lambda *_: None)
    live.admin.grow_topic(live.topic, 3)
    key = next(
        k
        for k in (b"m%d" % n for n in range(99))
        if (Murmur2().partition(k, 3), HASHING.partition(k, 3)) == (2, 0)
    )
    write(live, [(2, key, b"v", 1_000)])
    with pytest.raises(AssertionError, match=f"UnsafeState: .*key 0x{key.hex()}: found in partition 2 of 3"):
        live.run()
    assert key not in live.outputs()


def test_what_came_before_a_record_that_stops_its_task_is_not_passed_over_with_it(
    live: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "_check_samples", lambda *_: None)
    live.admin.grow_topic(live.topic, 3)
    stray = next(k for k in (b"m%d" % n for n in range(99)) if HASHING.partition(k, 3) == 1)
    write(live, [(0, KEPT, b"a", 600), (0, KEPT, b"b", 700), (0, stray, b"v", 800), (0, KEPT, b"c", 900)])
    with pytest.raises(AssertionError, match=rf"partition 0 offset 3: key 0x{stray.hex()}.*offset behind it|such"):
        live.run()
    set_offset(live.application, live.connection, (live.topic, 0), "4")
    live.run()
    assert [value for value, *_ in live.outputs()[KEPT]] == folds(b"a", b"b", b"c")


def test_an_input_that_grows_without_being_declared_is_refused(live: Growing) -> None:
    live.linear = False
    live.admin.grow_topic(live.topic, 4)
    with pytest.raises(Refused, match="no declared linear hashing"):
        live.run()


def backfilled(live: Growing) -> None:
    """Process everything again, beside the running generation."""
    again, application = f"{live.topic}-again", live.application
    live.admin.ensure_topic(again, 2, 1, {"retention.ms": "-1"})
    backfill = Backfill(start_ms=T0, end_ms=T0 + 60_000, outputs={f"{live.topic}-folded": again})
    generation = backfill.generation(application.application_id)
    own = application.model_copy(update={"application_id": generation})
    run_all(own, live.connection, "backfill/1", backfill)


def test_a_backfill_of_an_input_that_has_grown_keeps_the_order_of_every_key(live: Growing) -> None:
    written_by_a_producer_that_learns_late(live)
    backfilled(live)
    assert [value for value, *_ in live.outputs("again")[KEY]] == IN_ORDER


def test_a_backfill_of_keys_that_have_moved_in_a_way_that_nobody_knows_is_refused(live: Growing) -> None:
    written_by_a_producer_that_learns_late(live)
    live.run()
    live.linear = False
    with pytest.raises(Refused, match=r"backfill of input .*no declared linear hashing"):
        backfilled(live)
    own = [name for name in live.admin.list_topics() if "-app-backfill-" in name and name.startswith(live.topic)]
    assert own == [], "nothing was touched"
