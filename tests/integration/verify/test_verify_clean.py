"""A correct copy passes every oracle, whatever the store and the counts, and whatever blue has lost since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog
from pyspark.sql import SparkSession

from testbed.processes import wait_until
from tests.support.changelogs import (
    KEY_TOPIC,
    Record,
    append,
    changelog_key,
    copied,
    history,
    log_range,
    placed,
    record_count,
    trim,
    write_log,
)
from tests.support.mutations import SINCE, Client, pair_of
from tests.support.verify.one_store import compare_store

pytestmark = pytest.mark.integration

WINDOWED = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}


TYPES = ("key-value", "timestamped-key-value", "timestamped-window", "session")
# In `make test`, windows and sessions are in test_stores_together.py; most tests below are without transactions.
LOGS = [
    pytest.param(
        kind,
        transactional,
        id=f"{'transactional' if transactional else 'plain'}-{kind}",
        marks=[] if transactional and kind in TYPES[:2] else [pytest.mark.slow],
    )
    for transactional in (False, True)
    for kind in TYPES
]


@pytest.mark.parametrize(("store_type", "transactional"), LOGS)
def test_a_copy_to_twice_as_many_partitions_passes(
    spark: SparkSession, client: Client, unique: str, store_type: str, transactional: bool
) -> None:
    records = history(store_type, SINCE)
    source = placed(records, store_type, 4)
    blue = write_log(client, f"{unique}-blue", 4, source, transactional=transactional)
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), store_type, 8), transactional=True)

    report = compare_store(spark, client, pair_of(blue, green, store_type))

    assert report.findings == ()
    assert report.passed
    assert (report.blue.records, report.green.records) == (len(records), len(records))
    assert (report.blue.live, report.green.live) == (21, 21)
    assert (report.blue.tombstoned, report.green.tombstoned) == (3, 3)
    assert (report.expired, report.surplus) == (0, 0)
    assert sum(p.green_live for p in report.partitions) == 21
    assert [p.blue_hash for p in report.partitions] == [p.green_hash for p in report.partitions]
    assert len({p.blue_hash for p in report.partitions if p.blue_live}) > 1


# In `make test`, test_stores_together.py goes from 4 to 6.
@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(4, 6, marks=pytest.mark.slow), (4, 2), pytest.param(1, 5, marks=pytest.mark.slow)],
)
def test_any_other_count_passes(spark: SparkSession, client: Client, unique: str, before: int, after: int) -> None:
    records = history("session", SINCE)
    blue = write_log(client, f"{unique}-blue", before, placed(records, "session", before))
    green = write_log(client, f"{unique}-green", after, placed(copied(records), "session", after))

    assert compare_store(spark, client, pair_of(blue, green, "session")).findings == ()


@pytest.mark.parametrize(
    ("partitioner", "before", "after"),
    [("linear-hashing:3", 5, 10), ("static:tests.support.user_partitioners:pinned", 4, 8)],
)
def test_a_partitioner_that_is_no_residue_passes(
    spark: SparkSession, client: Client, unique: str, partitioner: str, before: int, after: int
) -> None:
    records, kind = history("key-value", SINCE), "key-value"
    blue = write_log(client, f"{unique}-blue", before, placed(records, kind, before, partitioner))
    green = write_log(client, f"{unique}-green", after, placed(copied(records), kind, after, partitioner))

    pair = pair_of(blue, green, kind, partitioner=partitioner, key_topic=KEY_TOPIC)
    assert compare_store(spark, client, pair).findings == ()


def test_a_static_partitioner_that_moves_keys_breaks_its_promise(
    spark: SparkSession, client: Client, unique: str
) -> None:
    """Every record is where the function puts it. Only the promise of KIP-878 is broken."""
    partitioner, records = (
        "static:tests.support.user_partitioners:claims_to_be_static",
        history("key-value", SINCE),
    )
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "key-value", 4, partitioner))
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), "key-value", 8, partitioner))
    pair = pair_of(blue, green, "key-value", partitioner=partitioner, key_topic=KEY_TOPIC)

    assert set(compare_store(spark, client, pair).failures) == {Oracle.RESIDUE}


def test_an_empty_store_passes(spark: SparkSession, client: Client, unique: str) -> None:
    blue = write_log(client, f"{unique}-blue", 2, [])
    green = write_log(client, f"{unique}-green", 4, [])

    report = compare_store(spark, client, pair_of(blue, green, "timestamped-key-value"))

    assert report.passed
    assert [p.green_live for p in report.partitions] == [0, 0, 0, 0]


def test_what_green_writes_later_is_left_out(spark: SparkSession, client: Client, unique: str) -> None:
    records = history("key-value", SINCE)
    later = [replace(r, value=b"by green itself") for r in copied(records)]
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "key-value", 4))
    whole = placed(copied(records), "key-value", 8)
    ends = {p: (0, sum(q == p for q, _ in whole)) for p in range(8)}
    write_log(client, f"{unique}-green", 8, [*whole, *placed(later, "key-value", 8)])

    green = ComparedLog(topic=f"{unique}-green", partitions=8, ranges=ends)

    assert compare_store(spark, client, pair_of(blue, green, "key-value")).findings == ()


def test_blue_may_have_lost_its_oldest_records_to_compaction(
    spark: SparkSession, client: Client, unique: str
) -> None:
    """Compaction leaves the end of each key's history. It leaves nothing of a key whose tombstone is gone too."""
    records = history("key-value", SINCE)
    newest = {r.key: r for r in records}
    forgotten = [key for key, r in newest.items() if r.value is None][:2]
    left = [r for i, r in enumerate(records) if r.key not in forgotten and (i >= 30 or r == newest[r.key])]
    blue = write_log(client, f"{unique}-blue", 4, placed(left, "key-value", 4), transactional=True)
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), "key-value", 8), transactional=True)

    report = compare_store(spark, client, pair_of(blue, green, "key-value"))

    assert report.findings == ()
    assert report.surplus == len(records) - len(left)


# In `make test`, the test above has what compaction leaves, and test_rolling_proof.py compares beside a log
# cleaner.
@pytest.mark.slow
def test_what_the_log_cleaner_leaves_is_the_end_of_each_history(
    spark: SparkSession, client: Client, unique: str
) -> None:
    first = history("key-value", SINCE)
    # Their timestamps are an hour later, so the broker closes the segment before them and may clean it.
    second = [replace(r, value=b"later", timestamp=r.timestamp + 3_600_000) for r in first[:12]]
    eager = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.001"}
    records = [*first, *second]
    write_log(client, f"{unique}-blue", 1, placed(first, "key-value", 1), config=eager)
    append(client, f"{unique}-blue", placed(second, "key-value", 1))
    blue = log_range(client, f"{unique}-blue")
    green = write_log(client, f"{unique}-green", 3, placed(copied(records), "key-value", 3), transactional=True)
    wait_until(lambda: record_count(client, blue) < len(records), timeout=120, what="the log cleaner")

    report = compare_store(spark, client, pair_of(blue, green, "key-value"))

    assert report.findings == ()
    assert report.blue.records < report.green.records
    assert report.surplus == report.green.records - report.blue.records


# In `make test`, test_stores_together.py counts such an entry, and the test below has one that nothing excuses.
@pytest.mark.slow
def test_entries_that_retention_has_deleted_are_counted_but_prove_nothing(
    spark: SparkSession, client: Client, unique: str
) -> None:
    records = [Record(changelog_key("window", n), b"count", SINCE + n) for n in range(20)]
    target = placed(records, "window", 4)
    blue = write_log(client, f"{unique}-blue", 2, placed(records, "window", 2), config=WINDOWED)
    write_log(client, f"{unique}-green", 4, target, config=WINDOWED)
    partition = target[0][0]
    trim(client, f"{unique}-green", partition, 1)
    green = log_range(client, f"{unique}-green")
    pair = pair_of(blue, green, "window")

    excused = compare_store(spark, client, pair.model_copy(update={"expires_before_ms": SINCE + 1}))
    too_young = compare_store(spark, client, pair.model_copy(update={"expires_before_ms": SINCE}))

    assert (excused.findings, excused.expired, excused.blue.live) == ((), 1, 19)
    assert [f.key for f in too_young.findings] == [records[0].key.hex()]


def test_age_alone_excuses_nothing_where_the_log_is_whole(
    spark: SparkSession, client: Client, unique: str
) -> None:
    records = [Record(changelog_key("window", n), b"count", SINCE + n) for n in range(20)]
    blue = write_log(client, f"{unique}-blue", 2, placed(records, "window", 2), config=WINDOWED)
    green = write_log(client, f"{unique}-green", 4, placed(records[1:], "window", 4), config=WINDOWED)

    report = compare_store(spark, client, pair_of(blue, green, "window", expires_before_ms=SINCE + 1000))

    assert [f.key for f in report.findings] == [records[0].key.hex()]


def test_two_applications_with_equal_input_may_have_logged_other_intermediate_results(
    spark: SparkSession, client: Client, unique: str
) -> None:
    records = history("key-value", SINCE)
    last_round = records[24:]
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "key-value", 4))
    green = write_log(client, f"{unique}-green", 6, placed(last_round, "key-value", 6))
    wrong = [replace(r, value=b"other") if r == records[-1] else r for r in last_round]
    other = write_log(client, f"{unique}-other", 6, placed(wrong, "key-value", 6))

    assert compare_store(spark, client, pair_of(blue, green, "key-value", copied=False)).findings == ()
    failed = compare_store(spark, client, pair_of(blue, other, "key-value", copied=False))
    assert [f.key for f in failed.findings] == [records[-1].key.hex()]
