"""Each oracle can fail: a copy with one mistake in it, and the finding that names the key."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog
from kafka_rescale.spark.verify.compare import compare_store
from pyspark.sql import SparkSession

from tests.support.changelogs import POSITION, Placed, Record, changelog_key, copied, history, placed, write_log
from tests.support.mutations import SINCE, Client, Mutation, changed, moved, of_key, pair_of

pytestmark = pytest.mark.integration

STORE_TYPE = "timestamped-window"
RECORDS = history(STORE_TYPE, SINCE)
KEY = changelog_key(STORE_TYPE, 9)
OTHER = changelog_key(STORE_TYPE, 10)
DELETED = changelog_key(STORE_TYPE, 4)
ONCE = Record(changelog_key(STORE_TYPE, 99), b"written once", SINCE + 1_000)


def dropped_key(green: list[Placed]) -> list[Placed]:
    return [(p, r) for p, r in green if r.key != KEY]


def dropped_update(green: list[Placed]) -> list[Placed]:
    last = of_key(green, KEY)[-1]
    return green[:last] + green[last + 1 :]


def swapped_values(green: list[Placed]) -> list[Placed]:
    one, other = of_key(green, KEY)[-1], of_key(green, OTHER)[-1]
    swapped = changed(green, one, value=green[other][1].value)
    return changed(swapped, other, value=green[one][1].value)


def emptied_value(green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, KEY)[-1], value=b"")


def deleted_key(green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, KEY)[-1], value=None)


def shifted_timestamp(green: list[Placed]) -> list[Placed]:
    last = of_key(green, KEY)[-1]
    return changed(green, last, timestamp=green[last][1].timestamp + 1)


def changed_header(green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, KEY)[-1], headers=(("trace", b"8"), ("empty", None)))


def header_without_its_null(green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, KEY)[-1], headers=(("trace", b"9"), ("empty", b"")))


def kept_position(green: list[Placed]) -> list[Placed]:
    last = of_key(green, KEY)[-1]
    return changed(green, last, headers=(*green[last][1].headers, *POSITION))


def resurrected_tombstone(green: list[Placed]) -> list[Placed]:
    last = of_key(green, DELETED)[-1]
    return green[:last] + green[last + 1 :]


def invented_key(green: list[Placed]) -> list[Placed]:
    return [*green, *placed([replace(ONCE, key=changelog_key(STORE_TYPE, 77))], STORE_TYPE, 8)]


def misplaced_key(green: list[Placed]) -> list[Placed]:
    return moved(green, KEY, lambda p: (p + 1) % 8)


def hashed_whole_key(green: list[Placed]) -> list[Placed]:
    whole = {r.key: p for p, r in placed([r for _, r in green], "key-value", 8)}
    return [(whole[r.key], r) for _, r in green]


def key_in_two_partitions(green: list[Placed]) -> list[Placed]:
    first, (partition, record) = of_key(green, KEY)[0], green[of_key(green, KEY)[0]]
    return [*green[:first], ((partition + 4) % 8, record), *green[first + 1 :]]


def duplicated_single_record(green: list[Placed]) -> list[Placed]:
    return [*green, green[of_key(green, ONCE.key)[0]]]


def duplicated_middle_record(green: list[Placed]) -> list[Placed]:
    middle = of_key(green, KEY)[1]
    return [*green[:middle], green[middle], *green[middle:]]


def copied_twice(green: list[Placed]) -> list[Placed]:
    return green + green


def reordered_old_records(green: list[Placed]) -> list[Placed]:
    first, second, _ = of_key(green, KEY)
    swapped = list(green)
    swapped[first], swapped[second] = green[second], green[first]
    return swapped


def reordered_last_records(green: list[Placed]) -> list[Placed]:
    _, second, last = of_key(green, KEY)
    swapped = list(green)
    swapped[second], swapped[last] = green[last], green[second]
    return swapped


MUTATIONS: list[tuple[Mutation, Oracle, bytes, str]] = [
    (dropped_key, Oracle.STATE, KEY, "missing in green"),
    (dropped_update, Oracle.STATE, KEY, "value differs, timestamp"),
    (swapped_values, Oracle.STATE, KEY, "value differs"),
    (swapped_values, Oracle.STATE, OTHER, "value differs"),
    (emptied_value, Oracle.STATE, KEY, "value differs"),
    (deleted_key, Oracle.STATE, KEY, "a value in blue, deleted in green"),
    (shifted_timestamp, Oracle.STATE, KEY, "timestamp 1700000000057 in blue, 1700000000058 in green"),
    (changed_header, Oracle.STATE, KEY, "headers differ"),
    (header_without_its_null, Oracle.STATE, KEY, "headers differ"),
    (kept_position, Oracle.STATE, KEY, "headers differ"),
    (resurrected_tombstone, Oracle.TOMBSTONES, DELETED, "deleted in blue, a value in green"),
    (invented_key, Oracle.TOMBSTONES, changelog_key(STORE_TYPE, 77), "blue has no record of the key"),
    (misplaced_key, Oracle.PLACEMENT, KEY, "instead of"),
    (misplaced_key, Oracle.RESIDUE, KEY, "of green"),
    (hashed_whole_key, Oracle.PLACEMENT, OTHER, "instead of"),
    (key_in_two_partitions, Oracle.ONE_PARTITION, KEY, "partitions"),
    (key_in_two_partitions, Oracle.PLACEMENT, KEY, "instead of"),
    (duplicated_single_record, Oracle.DUPLICATES, ONCE.key, "blue's log is complete and has 1 of the key"),
    (duplicated_middle_record, Oracle.SEQUENCE, KEY, "record 3 from the end: value differs"),
    (duplicated_middle_record, Oracle.DUPLICATES, KEY, "blue's log is complete and has 3 of the key"),
    (copied_twice, Oracle.DUPLICATES, KEY, "blue's log is complete and has 3 of the key"),
    (reordered_old_records, Oracle.SEQUENCE, KEY, "record 2 from the end: value differs"),
    (reordered_last_records, Oracle.STATE, KEY, "value differs"),
]


@pytest.fixture(scope="module")
def blue(client: Client) -> ComparedLog:
    """A log from which nothing has ever been removed."""
    return write_log(client, "mutations-blue", 4, placed([*RECORDS, ONCE], STORE_TYPE, 4))


def correct_green() -> list[Placed]:
    return placed(copied([*RECORDS, ONCE]), STORE_TYPE, 8)


def test_without_a_mutation_everything_passes(
    spark: SparkSession, client: Client, blue: ComparedLog, unique: str
) -> None:
    green = write_log(client, unique, 8, correct_green(), transactional=True)

    assert compare_store(spark, client, pair_of(blue, green, STORE_TYPE)).findings == ()


@pytest.mark.parametrize(
    ("mutation", "oracle", "key", "detail"),
    MUTATIONS,
    ids=[f"{m.__name__}-{o.name.lower()}-{i}" for i, (m, o, _, _) in enumerate(MUTATIONS)],
)
def test_a_mistake_is_found_and_named(
    spark: SparkSession,
    client: Client,
    blue: ComparedLog,
    unique: str,
    mutation: Mutation,
    oracle: Oracle,
    key: bytes,
    detail: str,
) -> None:
    green = write_log(client, unique, 8, mutation(correct_green()), transactional=True)

    report = compare_store(spark, client, pair_of(blue, green, STORE_TYPE))

    found = [f for f in report.findings if f.oracle is oracle and f.key == key.hex()]
    assert not report.passed
    assert report.failures[oracle] >= 1
    assert found, report.findings
    assert detail in found[0].detail
    assert "@" in found[0].blue + found[0].green


def test_a_key_that_blue_itself_has_in_the_wrong_partition_is_named(
    spark: SparkSession, client: Client, unique: str
) -> None:
    misplaced = moved(placed(RECORDS, STORE_TYPE, 4), KEY, lambda p: (p + 1) % 4)
    wrong_blue = write_log(client, f"{unique}-blue", 4, misplaced)
    green = write_log(client, f"{unique}-green", 8, placed(copied(RECORDS), STORE_TYPE, 8))

    report = compare_store(spark, client, pair_of(wrong_blue, green, STORE_TYPE))

    assert set(report.failures) == {Oracle.MISPLACED_IN_BLUE, Oracle.RESIDUE}
    assert {f.key for f in report.findings} == {KEY.hex()}


def test_a_key_that_is_too_short_for_the_store_type_is_named(
    spark: SparkSession, client: Client, unique: str
) -> None:
    short = [(0, Record(b"short", b"value", SINCE))]
    source = write_log(client, f"{unique}-blue", 4, short)
    target = write_log(client, f"{unique}-green", 8, short)

    report = compare_store(spark, client, pair_of(source, target, STORE_TYPE))

    assert {f.detail for f in report.findings} == {"the key can't be of the store type"}
    assert {f.text for f in report.findings} == {"short"}


def test_the_number_of_listed_findings_is_bounded(spark: SparkSession, client: Client, unique: str) -> None:
    records = [Record(changelog_key("key-value", n), b"value", SINCE) for n in range(50)]
    source = write_log(client, f"{unique}-blue", 2, placed(records, "key-value", 2))
    target = write_log(client, f"{unique}-green", 4, [])

    report = compare_store(spark, client, pair_of(source, target, "key-value"))

    assert report.failures == {Oracle.STATE: 50}
    assert len(report.findings) == 20
