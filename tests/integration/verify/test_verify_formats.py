"""The proof of every changelog format: a correct copy passes, and a mistake in the format's specialty is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.report import StoreReport
from pyspark.sql import SparkSession

from tests.support import mutations
from tests.support.changelogs import POSITION, Placed, Record, changelog_key, copied, history, placed, write_log
from tests.support.mutations import SINCE, Client, Mutation, changed, moved, of_key
from tests.support.verify.one_store import compare_store

pytestmark = pytest.mark.integration

SUBSCRIPTIONS = "foreign-key-subscription"
KEPT = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**63 - 1)}


def pair_of(blue: ComparedLog, green: ComparedLog, store_type: str, **changes: object) -> StorePair:
    """Return a comparison with what an expansion knows about the format."""
    pair = mutations.pair_of(blue, green, store_type)
    if store_type == SUBSCRIPTIONS:
        left = LeftTable(
            partitioner="murmur2", source_partitions=blue.partitions, target_partitions=green.partitions
        )
        pair = pair.model_copy(update={"left": left})
    if store_type == "versioned":
        pair = pair.model_copy(update={"versions_since_ms": SINCE})
    return pair.model_copy(update=changes)


def compare(
    spark: SparkSession,
    client: Client,
    unique: str,
    store_type: str,
    mutation: Mutation = list,
    *,
    after: int = 8,
    **changes: object,
) -> StoreReport:
    """Compare blue's log of 4 partitions with its copy after a mutation."""
    records = history(store_type, SINCE)
    blue = write_log(client, f"{unique}-blue", 4, placed(records, store_type, 4), config=KEPT)
    whole = mutation(placed(copied(records), store_type, after))
    green = write_log(client, f"{unique}-green", after, whole, transactional=True, config=KEPT)
    return compare_store(spark, client, pair_of(blue, green, store_type, **changes))


@pytest.mark.parametrize("store_type", ["versioned", "outer-join", SUBSCRIPTIONS])
def test_a_correct_copy_passes(spark: SparkSession, client: Client, unique: str, store_type: str) -> None:
    report = compare(spark, client, unique, store_type, after=6)
    assert report.findings == ()
    assert (report.blue.live, report.green.live) == (21, 21)


def test_a_processor_store_is_placed_by_its_own_function(spark: SparkSession, client: Client, unique: str) -> None:
    records = history("timestamped-window", SINCE)
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "timestamped-window", 4))
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), "timestamped-window", 8))
    for extractor, failures in (
        ("drop-last-12", set()),
        ("first-99", {Oracle.PLACEMENT, Oracle.MISPLACED_IN_BLUE}),
    ):
        report = compare_store(spark, client, pair_of(blue, green, "processor", partitioning_key=extractor))
        assert set(report.failures) == failures, extractor


def test_only_the_position_of_a_consistency_vector_may_be_missing(
    spark: SparkSession, client: Client, unique: str
) -> None:
    mine = (("c", b"mine"), ("v", b"\x00"), ("x", b"y"))
    records = [Record(changelog_key("key-value", n), b"v", SINCE + n, (*mine, *POSITION)) for n in range(4)]
    kept = [replace(r, headers=mine) for r in records]
    blue = write_log(client, f"{unique}-blue", 4, placed(records, "key-value", 4))
    lost = [*kept[:3], replace(kept[3], headers=mine[1:])]
    green = write_log(client, f"{unique}-green", 8, placed(lost, "key-value", 8))
    [finding] = compare_store(spark, client, pair_of(blue, green, "key-value")).findings
    assert (finding.key, finding.detail) == (kept[3].key.hex(), "headers differ")


def without(records: list[Placed], key: bytes, turn: int) -> list[Placed]:
    """Leave out one of a key's records, by its number from the first."""
    at = of_key(records, key)[turn]
    return records[:at] + records[at + 1 :]


OLDEST, MIDDLE, INVENTED, DELETED, SWAPPED = (changelog_key("versioned", n) for n in (9, 10, 11, 4, 13))


def wrong_versions(green: list[Placed]) -> list[Placed]:
    """One mistake per key."""
    green = without(without(green, OLDEST, 0), MIDDLE, 1)
    green = [(p, r) for p, r in green if r.key != DELETED]
    partition, record = green[of_key(green, INVENTED)[0]]
    first, second, _ = of_key(green, SWAPPED)
    green[first], green[second] = green[second], green[first]
    return [(partition, replace(record, value=b"invented", timestamp=SINCE)), *green]


def test_versions_that_are_missing_invented_or_out_of_order_are_found(
    spark: SparkSession, client: Client, unique: str
) -> None:
    report = compare(spark, client, unique, "versioned", wrong_versions)
    assert {(f.oracle, bytes.fromhex(f.key)) for f in report.findings} >= {
        (Oracle.VERSIONS, OLDEST),
        (Oracle.VERSIONS, MIDDLE),
        (Oracle.SEQUENCE, MIDDLE),
        (Oracle.VERSIONS, INVENTED),
        (Oracle.VERSIONS, DELETED),
        (Oracle.SEQUENCE, SWAPPED),
    }
    words = {(f.key, f.detail) for f in report.findings if f.oracle is Oracle.VERSIONS}
    assert words >= {
        (OLDEST.hex(), f"record 3 from the end: the version of {SINCE + 9} is missing in green"),
        (INVENTED.hex(), f"record 4 from the end: the version of {SINCE} is missing in blue"),
        (DELETED.hex(), f"record 1 from the end: the deletion of {SINCE + 52} is missing in green"),
    }


def test_a_version_that_compaction_may_have_removed_may_be_missing(
    spark: SparkSession, client: Client, unique: str
) -> None:
    report = compare(
        spark, client, unique, "versioned", lambda g: without(g, OLDEST, 0), versions_since_ms=SINCE + 20
    )
    assert report.findings == ()


NEXT, HASH, PRIMARY, PLACE = (changelog_key(SUBSCRIPTIONS, n) for n in (9, 14, 11, 13))


def with_value(green: list[Placed], key: bytes, change: Callable[[bytes], bytes]) -> list[Placed]:
    last = of_key(green, key)[-1]
    return changed(green, last, value=change(green[last][1].value or b""))


@pytest.mark.parametrize("wrong", [False, True])
def test_a_partitioner_of_the_left_table_is_asked_only_for_its_keys(
    spark: SparkSession, client: Client, unique: str, wrong: bool
) -> None:
    """It fails on any other key. Neither a tombstone nor a subscription of version 0 names one."""
    by_number = "tests.support.user_partitioners:claims_to_be_static"
    records = history(SUBSCRIPTIONS, SINCE)
    assert {r.value[0] if r.value else None for r in records} == {None, 0, 1}
    blue = write_log(client, f"{unique}-blue", 4, placed(records, SUBSCRIPTIONS, 4, left=by_number), config=KEPT)
    copies = placed(copied(records), SUBSCRIPTIONS, 6, left=by_number)
    copies = with_value(copies, NEXT, lambda v: v[:-1] + bytes([v[-1] ^ 1])) if wrong else copies
    green = write_log(client, f"{unique}-green", 6, copies, transactional=True, config=KEPT)
    left = LeftTable(partitioner=by_number, source_partitions=4, target_partitions=6)
    report = compare_store(spark, client, pair_of(blue, green, SUBSCRIPTIONS, left=left))
    assert set(report.failures) == ({Oracle.PRIMARY_PARTITION} if wrong else set())


def wrong_subscriptions(green: list[Placed]) -> list[Placed]:
    """One mistake per key."""
    green = with_value(green, NEXT, lambda v: v[:-1] + bytes([(v[-1] + 1) % 8]))
    green = with_value(green, HASH, lambda v: v[:2] + bytes(16) + v[18:])
    green = with_value(green, PRIMARY, lambda v: v[:18] + b"l" + v[18:])
    return moved(green, PLACE, lambda p: (p + 1) % 8)


def test_subscriptions_that_are_wrong_are_found(spark: SparkSession, client: Client, unique: str) -> None:
    report = compare(spark, client, unique, SUBSCRIPTIONS, wrong_subscriptions)
    found = {(f.oracle, bytes.fromhex(f.key)): f.detail for f in report.findings}
    assert found[Oracle.PRIMARY_PARTITION, NEXT].startswith("names partition ")
    assert found[Oracle.STATE, HASH] == "value differs"
    assert found[Oracle.STATE, PRIMARY] == "value differs"
    assert "instead of" in found[Oracle.PLACEMENT, PLACE]
    assert (Oracle.STATE, NEXT) not in found


def test_of_join_windows_every_duplicate_is_an_entry_of_its_own(
    spark: SparkSession, client: Client, unique: str
) -> None:
    key = changelog_key("join-window", 3)
    same = [Record(key[:-4] + n.to_bytes(4), b"value", SINCE) for n in (1, 2, 3)]
    blue = write_log(client, f"{unique}-blue", 4, placed(same, "join-window", 4), config=KEPT)
    less = write_log(client, f"{unique}-less", 8, placed(same[:2], "join-window", 8), config=KEPT)
    [finding] = compare_store(spark, client, pair_of(blue, less, "join-window")).findings
    assert (finding.key, finding.detail) == (same[2].key.hex(), "live in blue, missing in green")
