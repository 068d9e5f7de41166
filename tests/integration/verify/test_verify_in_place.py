"""The proof of a growth in place compares what was in the topic with what is there now, in one log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from pyspark.sql import SparkSession

from tests.support.changelogs import Placed, Record, append, copied, history, log_range, placed, write_log
from tests.support.mutations import SINCE, Client, Mutation, of_key, pair_of
from tests.support.verify.one_store import compare_store

pytestmark = pytest.mark.integration

STORE_TYPE = "timestamped-window"
RECORDS = history(STORE_TYPE, SINCE)


def moved(records: Iterable[Record], before: int, after: int, store_type: str = STORE_TYPE) -> list[Placed]:
    """Return what a correct move appends: the records of the keys that move, and finally their tombstones."""
    was, now = ({r.key: p for p, r in placed(records, store_type, n)} for n in (before, after))
    moving = [r for r in records if was[r.key] != now[r.key]]
    last = {r.key: r for r in moving}
    arrivals = [(now[r.key], r) for r in copied(moving)]
    return [*arrivals, *((was[k], Record(k, None, r.timestamp)) for k, r in last.items() if r.value is not None)]


def key_that(moves: bool) -> bytes:
    """Return a live key that moves in a growth from 4 to 8 partitions, or a live key that stays."""
    rule, form = partitioner_named("murmur2"), format_of(STORE_TYPE)
    last = {r.key: r for r in RECORDS}
    inner = {key: form.partitioning_key(key) for key, r in last.items() if r.value is not None}
    return next(k for k, key in inner.items() if (rule.partition(key, 4) != rule.partition(key, 8)) == moves)


MOVES, STAYS = key_that(True), key_that(False)


def compared(
    spark: SparkSession, client: Client, topic: str, appended: list[Placed], before: int = 4, after: int = 8
) -> StoreReport:
    """Write the old records, grow the topic, append the new records, and compare."""
    source = placed(RECORDS, STORE_TYPE, before)
    blue = write_log(client, topic, before, source, transactional=True)
    return grown(spark, client, pair_of(blue, blue, STORE_TYPE), appended, after)


def grown(spark: SparkSession, client: Client, pair: StorePair, appended: list[Placed], after: int) -> StoreReport:
    ClusterAdmin(KafkaConnection(dict(client))).grow_topic(pair.blue.topic, after)
    append(client, pair.blue.topic, appended)
    green = log_range(client, pair.blue.topic)
    return compare_store(spark, client, pair.model_copy(update={"green": green}))


@pytest.mark.parametrize(("before", "after"), [(4, 6), pytest.param(4, 8, marks=pytest.mark.slow)])
def test_a_correct_move_passes(spark: SparkSession, client: Client, unique: str, before: int, after: int) -> None:
    report = compared(spark, client, unique, moved(RECORDS, before, after), before, after)
    assert report.findings == ()
    assert (report.blue.records, report.green.records) == (len(RECORDS), len(RECORDS))
    assert (report.blue.live, report.green.live) == (21, 21)
    assert [p.blue_hash for p in report.partitions] == [p.green_hash for p in report.partitions]


def without(is_one: Callable[[Placed], bool]) -> Mutation:
    return lambda appended: [each for each in appended if not is_one(each)]


def is_burial(each: Placed) -> bool:
    """Whether a record is the tombstone of ``MOVES`` in its old partition."""
    home = partitioner_named("murmur2").partition(format_of(STORE_TYPE).partitioning_key(MOVES), 8)
    return each[1].key == MOVES and each[0] != home


def is_arrival(each: Placed) -> bool:
    return each[1].key == MOVES and not is_burial(each)


def with_other_value(appended: list[Placed]) -> list[Placed]:
    last = max(i for i, each in enumerate(appended) if is_arrival(each))
    partition, record = appended[last]
    return [*appended[:last], (partition, replace(record, value=b"other")), *appended[last + 1 :]]


def arrivals_reversed(appended: list[Placed]) -> list[Placed]:
    at = [i for i, each in enumerate(appended) if is_arrival(each)]
    back = dict(zip(at, reversed(at), strict=True))
    return [appended[back.get(i, i)] for i in range(len(appended))]


def staying_key_buried(appended: list[Placed]) -> list[Placed]:
    stays = placed(RECORDS, STORE_TYPE, 4)
    partition, record = stays[of_key(stays, STAYS)[-1]]
    return [*appended, (partition, replace(record, value=None, headers=()))]


def come_back(appended: list[Placed]) -> list[Placed]:
    buried = next(each for each in appended if is_burial(each))
    return [*appended, (buried[0], replace(buried[1], value=b"back"))]


QUICK = 3
"""`make test` runs so many of the cases."""

MUTATIONS: dict[str, tuple[Mutation, set[Oracle]]] = {
    "a moved key without its tombstone is twice": (
        without(is_burial),
        {Oracle.PLACEMENT, Oracle.ONE_PARTITION},
    ),
    "a key that was not moved is misplaced": (
        without(lambda each: each[1].key == MOVES),
        {Oracle.PLACEMENT},
    ),
    "a key that was buried and not copied is gone": (without(is_arrival), {Oracle.STATE}),
    "a value that was changed on the way": (with_other_value, {Oracle.STATE}),
    "records in another order": (arrivals_reversed, {Oracle.STATE, Oracle.SEQUENCE}),
    "a key that stays and was buried": (staying_key_buried, {Oracle.STATE}),
    "a key that was written again where it was buried": (
        come_back,
        {Oracle.PLACEMENT, Oracle.ONE_PARTITION},
    ),
}


CASES = [
    pytest.param(*case, id=name, marks=[] if number < QUICK else [pytest.mark.slow])
    for number, (name, case) in enumerate(MUTATIONS.items())
]


@pytest.mark.parametrize(("mutation", "oracles"), CASES)
def test_a_wrong_move_is_found(
    spark: SparkSession, client: Client, unique: str, mutation: Mutation, oracles: set[Oracle]
) -> None:
    report = compared(spark, client, unique, mutation(moved(RECORDS, 4, 8)))
    assert oracles <= report.failures.keys()
    assert {f.key for f in report.findings} == {STAYS.hex() if mutation is staying_key_buried else MOVES.hex()}


def test_what_an_earlier_growth_has_left_behind_is_not_compared(
    spark: SparkSession, client: Client, unique: str
) -> None:
    """The topic grows from 4 to 6 to 8, with murmur2.

    Keys go to other old partitions, and some return to their first.
    """
    write_log(client, unique, 4, placed(RECORDS, STORE_TYPE, 4), transactional=True)
    ClusterAdmin(KafkaConnection(dict(client))).grow_topic(unique, 6)
    append(client, unique, moved(RECORDS, 4, 6))
    blue = log_range(client, unique)
    pair = pair_of(blue, blue, STORE_TYPE, left_behind=True)
    report = grown(spark, client, pair, moved(RECORDS, 6, 8), 8)
    assert report.findings == ()
    assert (report.blue.live, report.green.live) == (21, 21)

    beside = write_log(client, f"{unique}-g2", 3, placed(copied(RECORDS), STORE_TYPE, 3))
    now = pair.model_copy(update={"blue": log_range(client, unique), "green": beside})
    assert compare_store(spark, client, now).findings == ()
    strict = compare_store(spark, client, now.model_copy(update={"left_behind": False}))
    assert {Oracle.MISPLACED_IN_BLUE, Oracle.ONE_PARTITION} <= strict.failures.keys()
