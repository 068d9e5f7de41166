"""Stores of every kind in one plan: each has the same report as alone, and Spark says how far it has read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.verify.readings import Readings
from kafka_rescale.spark.verify.compare import compare_stores
from kafka_rescale.spark.verify.live import BesideBlue, prove_stores
from pyspark.sql import SparkSession

from testbed.processes import wait_until
from tests.integration.verify import test_verify_formats as formats
from tests.integration.verify import test_verify_in_place as in_place
from tests.support.changelogs import (
    KEY_TOPIC,
    Record,
    append,
    changelog_key,
    copied,
    history,
    log_range,
    placed,
    trim,
    write_log,
)
from tests.support.mutations import SINCE, Client, Mutation, changed, of_key
from tests.support.verify.one_store import compare_store

pytestmark = pytest.mark.integration

KEY = changelog_key("key-value", 9)


def other_value(green: list[tuple[int, Record]]) -> list[tuple[int, Record]]:
    return changed(green, of_key(green, KEY)[-1], value=b"other")


def logs(
    client: Client, name: str, store_type: str, mutation: Mutation, after: int, partitioner: str = "murmur2"
) -> tuple[ComparedLog, ComparedLog]:
    """Write a log of 4 partitions, and its copy after a mutation."""
    records = history(store_type, SINCE)
    blue = write_log(client, f"{name}-blue", 4, placed(records, store_type, 4, partitioner), config=formats.KEPT)
    whole = mutation(placed(copied(records), store_type, after, partitioner))
    return blue, write_log(client, f"{name}-green", after, whole, transactional=True, config=formats.KEPT)


def expired(client: Client, name: str) -> StorePair:
    """A pair in which retention has deleted the beginning of a partition of green."""
    config = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    records = [Record(changelog_key("window", n), b"count", SINCE + n) for n in range(20)]
    target = placed(records, "window", 4)
    blue = write_log(client, f"{name}-blue", 2, placed(records, "window", 2), config=config)
    write_log(client, f"{name}-green", 4, target, config=config)
    trim(client, f"{name}-green", target[0][0], 1)
    green = log_range(client, f"{name}-green")
    return formats.pair_of(blue, green, "window", expires_before_ms=SINCE + 1)


def grown(client: Client, name: str) -> StorePair:
    """A pair for a topic that has grown in place. Its moved keys lack their tombstones."""
    blue = write_log(client, name, 4, placed(in_place.RECORDS, in_place.STORE_TYPE, 4), transactional=True)
    ClusterAdmin(KafkaConnection(dict(client))).grow_topic(name, 8)
    append(client, name, in_place.without(in_place.is_burial)(in_place.moved(in_place.RECORDS, 4, 8)))
    return formats.pair_of(blue, log_range(client, name), in_place.STORE_TYPE)


Made = Callable[[Client, str], StorePair]


def of(
    store_type: str, mutation: Mutation, after: int = 8, partitioner: str = "murmur2", **changes: object
) -> Made:
    def made(client: Client, name: str) -> StorePair:
        pair = formats.pair_of(
            *logs(client, name, store_type, mutation, after, partitioner), store_type, **changes
        )
        return pair.model_copy(update={"partitioner": partitioner, "key_topic": KEY_TOPIC})

    return made


KINDS: dict[str, tuple[Made, set[Oracle]]] = {
    "clean": (of("timestamped-key-value", list, 6), set()),
    "wrong": (of("key-value", other_value), {Oracle.STATE}),
    "wrong, not copied": (of("key-value", other_value, copied=False), {Oracle.STATE}),
    "versions": (of("versioned", formats.wrong_versions), {Oracle.VERSIONS, Oracle.SEQUENCE}),
    "later versions": (of("versioned", list, versions_since_ms=SINCE + 20), set()),
    "subscriptions": (
        of(formats.SUBSCRIPTIONS, formats.wrong_subscriptions),
        {Oracle.PRIMARY_PARTITION, Oracle.STATE, Oracle.PLACEMENT},
    ),
    "windows": (of("timestamped-window", list), set()),
    "crc32": (of("session", list, partitioner="crc32"), set()),
    "expired": (expired, set()),
}
IN_PYTHON = of("key-value", other_value, partitioner="tests.support.user_partitioners:by_adler")


@pytest.fixture(scope="module")
def pairs(client: Client) -> list[StorePair]:
    return [
        made(client, f"together-{n}").model_copy(update={"store": kind})
        for n, (kind, (made, _)) in enumerate(KINDS.items())
    ]


def test_every_store_has_the_report_that_it_has_alone(
    spark: SparkSession, client: Client, pairs: list[StorePair]
) -> None:
    reports = compare_stores(spark, client, pairs)

    assert [report.store for report in reports] == list(KINDS)
    for pair, report, (_, failures) in zip(pairs, reports, KINDS.values(), strict=True):
        assert report == compare_store(spark, client, pair), pair.store
        assert failures <= report.failures.keys(), pair.store
        assert report.passed == (not failures), pair.store
    assert sum(report.expired for report in reports) == 1


# In `make test`, the test above, and test_prove.py proves two stores together, each up to its own fence.
@pytest.mark.slow
def test_beside_a_live_blue_it_is_the_same_and_each_store_has_its_own_fence(
    spark: SparkSession, client: Client, pairs: list[StorePair]
) -> None:
    fenced = [pair.model_copy(update={"fence": dict(enumerate(pair.blue.ends))}) for pair in pairs]
    wrong = next(n for n, pair in enumerate(pairs) if pair.store == "wrong")
    fenced[wrong] = fenced[wrong].model_copy(update={"fence": dict.fromkeys(range(4), 0)})
    beside = [BesideBlue(lambda _: set(), lambda: False) for _ in pairs]

    reports = prove_stores(spark, client, fenced, beside)

    for report, alone, pair in zip(reports, compare_stores(spark, client, pairs), pairs, strict=True):
        if pair.store == "wrong":
            assert (report.passed, report.blue.live) == (True, 0), "all its keys were written behind its fence"
            assert report.excused
        else:
            assert (report.failures, report.excused) == (alone.failures, 0), pair.store


def test_when_every_key_is_written_again_only_what_lies_wrong_in_green_is_a_finding(
    spark: SparkSession, client: Client, pairs: list[StorePair]
) -> None:
    some = [pair for pair in pairs if pair.store in {"wrong", "subscriptions"}]
    fenced = [pair.model_copy(update={"fence": dict(enumerate(pair.blue.ends))}) for pair in some]

    reports = prove_stores(spark, client, fenced, [BesideBlue(lambda keys: {*keys}, lambda: False)] * len(some))

    assert [set(report.failures) for report in reports] == [set(), {Oracle.PLACEMENT}]
    assert reports[0].excused == 1, "the one wrong key, which is not judged after all"


# In `make test`, I/test_verify_in_place compares such stores one by one.
@pytest.mark.slow
def test_stores_that_grow_in_place_and_that_python_places_may_be_among_them(
    spark: SparkSession, client: Client, unique: str, pairs: list[StorePair]
) -> None:
    some = [grown(client, f"{unique}-in-place"), *pairs[:2], IN_PYTHON(client, f"{unique}-python")]

    reports = compare_stores(spark, client, some)

    assert reports == tuple(compare_store(spark, client, pair) for pair in some)
    assert [set(report.failures) for report in reports] == [
        {Oracle.PLACEMENT, Oracle.ONE_PARTITION},
        set(),
        {Oracle.STATE},
        {Oracle.STATE},
    ]


def test_spark_tells_how_much_it_has_read(spark: SparkSession, client: Client, unique: str) -> None:
    records = history("key-value", SINCE)
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "key-value", 4))
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), "key-value", 8))
    pair, readings = formats.pair_of(blue, green, "key-value"), Readings()
    assert readings.share("totals") == 0
    readings.begin(spark.sparkContext, ["totals"], [pair])
    assert readings.share("totals") == 0

    compare_store(spark, client, pair)

    wait_until(lambda: readings.share("totals") == 1, timeout=30, what="the metrics of the last task")
