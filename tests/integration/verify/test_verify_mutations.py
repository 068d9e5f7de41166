"""Each oracle can fail: a copy has one mistake, and a finding names its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.verify.delta import compare_stretch, compared_topics
from kafka_rescale.kafka.verify.stretch import Stretch
from kafka_rescale.spark.verify import alignment
from kafka_rescale.spark.verify.compare import compare_stores
from kafka_rescale.spark.verify.live import BesideBlue, prove_stores
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.integration.copy_helpers import changelog, plan_of
from tests.support.changelogs import POSITION, Placed, Record, changelog_key, copied, history, placed, write_log
from tests.support.mutations import SINCE, Client, changed, moved, of_key, pair_of
from tests.support.verify.one_store import compare_store

pytestmark = pytest.mark.integration

STORE_TYPE = "timestamped-window"
RECORDS = history(STORE_TYPE, SINCE)
KEY = changelog_key(STORE_TYPE, 9)


@dataclass(frozen=True)
class Family:
    """Keys that belong to one mistake, so that all mistakes fit into one pair of logs and one comparison."""

    number: int

    def named(self, key: bytes) -> bytes:
        """Return the name of a key of ``RECORDS`` in this family."""
        return b"%02d-%s" % (self.number, key)

    def numbered(self, number: int) -> bytes:
        return self.named(changelog_key(STORE_TYPE, number))

    @property
    def key(self) -> bytes:
        return self.numbered(9)

    @property
    def other(self) -> bytes:
        return self.numbered(10)

    @property
    def deleted(self) -> bytes:
        return self.numbered(4)

    @property
    def once(self) -> Record:
        return Record(self.numbered(99), b"written once", SINCE + 1_000)

    @property
    def records(self) -> list[Record]:
        """All records of its keys, in order."""
        named = (replace(r, key=self.named(r.key)) for r in RECORDS)
        return [*(r for r in named if r.key in {self.key, self.other, self.deleted}), self.once]


Mistake = Callable[[Family, list[Placed]], list[Placed]]


def dropped_key(of: Family, green: list[Placed]) -> list[Placed]:
    return [(p, r) for p, r in green if r.key != of.key]


def dropped_update(of: Family, green: list[Placed]) -> list[Placed]:
    last = of_key(green, of.key)[-1]
    return green[:last] + green[last + 1 :]


def swapped_values(of: Family, green: list[Placed]) -> list[Placed]:
    one, other = of_key(green, of.key)[-1], of_key(green, of.other)[-1]
    swapped = changed(green, one, value=green[other][1].value)
    return changed(swapped, other, value=green[one][1].value)


def emptied_value(of: Family, green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, of.key)[-1], value=b"")


def deleted_key(of: Family, green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, of.key)[-1], value=None)


def shifted_timestamp(of: Family, green: list[Placed]) -> list[Placed]:
    last = of_key(green, of.key)[-1]
    return changed(green, last, timestamp=green[last][1].timestamp + 1)


def changed_header(of: Family, green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, of.key)[-1], headers=(("trace", b"8"), ("empty", None)))


def header_without_its_null(of: Family, green: list[Placed]) -> list[Placed]:
    return changed(green, of_key(green, of.key)[-1], headers=(("trace", b"9"), ("empty", b"")))


def kept_position(of: Family, green: list[Placed]) -> list[Placed]:
    last = of_key(green, of.key)[-1]
    return changed(green, last, headers=(*green[last][1].headers, *POSITION))


def resurrected_tombstone(of: Family, green: list[Placed]) -> list[Placed]:
    last = of_key(green, of.deleted)[-1]
    return green[:last] + green[last + 1 :]


def invented_key(of: Family, green: list[Placed]) -> list[Placed]:
    return [*green, *placed([replace(of.once, key=of.numbered(77))], STORE_TYPE, 8)]


def misplaced_key(of: Family, green: list[Placed]) -> list[Placed]:
    return moved(green, of.key, lambda p: (p + 1) % 8)


def hashed_whole_key(of: Family, green: list[Placed]) -> list[Placed]:
    whole = {r.key: p for p, r in placed([r for _, r in green], "key-value", 8)}
    return [(whole[r.key], r) for _, r in green]


def key_in_two_partitions(of: Family, green: list[Placed]) -> list[Placed]:
    first, (partition, record) = of_key(green, of.key)[0], green[of_key(green, of.key)[0]]
    return [*green[:first], ((partition + 4) % 8, record), *green[first + 1 :]]


def duplicated_single_record(of: Family, green: list[Placed]) -> list[Placed]:
    return [*green, green[of_key(green, of.once.key)[0]]]


def duplicated_middle_record(of: Family, green: list[Placed]) -> list[Placed]:
    middle = of_key(green, of.key)[1]
    return [*green[:middle], green[middle], *green[middle:]]


def copied_twice(of: Family, green: list[Placed]) -> list[Placed]:
    return green + green


def reordered_old_records(of: Family, green: list[Placed]) -> list[Placed]:
    first, second, _ = of_key(green, of.key)
    swapped = list(green)
    swapped[first], swapped[second] = green[second], green[first]
    return swapped


def reordered_last_records(of: Family, green: list[Placed]) -> list[Placed]:
    _, second, last = of_key(green, of.key)
    swapped = list(green)
    swapped[second], swapped[last] = green[last], green[second]
    return swapped


MUTATIONS: list[tuple[Mistake, Oracle, int, str]] = [
    (dropped_key, Oracle.STATE, 9, "missing in green"),
    (dropped_update, Oracle.STATE, 9, "value differs, timestamp"),
    (swapped_values, Oracle.STATE, 9, "value differs"),
    (swapped_values, Oracle.STATE, 10, "value differs"),
    (emptied_value, Oracle.STATE, 9, "value differs"),
    (deleted_key, Oracle.STATE, 9, "a value in blue, deleted in green"),
    (shifted_timestamp, Oracle.STATE, 9, "timestamp 1700000000057 in blue, 1700000000058 in green"),
    (changed_header, Oracle.STATE, 9, "headers differ"),
    (header_without_its_null, Oracle.STATE, 9, "headers differ"),
    (kept_position, Oracle.STATE, 9, "headers differ"),
    (resurrected_tombstone, Oracle.TOMBSTONES, 4, "deleted in blue, a value in green"),
    (invented_key, Oracle.TOMBSTONES, 77, "blue has no record of the key"),
    (misplaced_key, Oracle.PLACEMENT, 9, "instead of"),
    (misplaced_key, Oracle.RESIDUE, 9, "of green"),
    (hashed_whole_key, Oracle.PLACEMENT, 10, "instead of"),
    (key_in_two_partitions, Oracle.ONE_PARTITION, 9, "partitions"),
    (key_in_two_partitions, Oracle.PLACEMENT, 9, "instead of"),
    (duplicated_single_record, Oracle.DUPLICATES, 99, "blue's log is complete and has 1 of the key"),
    (duplicated_middle_record, Oracle.SEQUENCE, 9, "record 3 from the end: value differs"),
    (duplicated_middle_record, Oracle.DUPLICATES, 9, "blue's log is complete and has 3 of the key"),
    (copied_twice, Oracle.DUPLICATES, 9, "blue's log is complete and has 3 of the key"),
    (reordered_old_records, Oracle.SEQUENCE, 9, "record 2 from the end: value differs"),
    (reordered_last_records, Oracle.STATE, 9, "value differs"),
]


FAMILIES = {mistake: Family(n) for n, mistake in enumerate(dict.fromkeys(m for m, *_ in MUTATIONS))}
SOUND = Family(len(FAMILIES))
"""The keys without a mistake."""


def test_without_a_mutation_everything_passes(spark: SparkSession, client: Client, unique: str) -> None:
    records = [*RECORDS, SOUND.once]
    blue = write_log(client, f"{unique}-blue", 4, placed(records, STORE_TYPE, 4))
    green = write_log(client, f"{unique}-green", 8, placed(copied(records), STORE_TYPE, 8), transactional=True)

    assert compare_store(spark, client, pair_of(blue, green, STORE_TYPE)).findings == ()


def test_what_the_log_cleaner_has_removed_while_blue_was_read_is_no_finding(
    spark: SparkSession, client: Client, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader sees a key's oldest record, and comes to the next one too late. A mistake is found as well."""
    second = [r.timestamp for r in RECORDS if r.key == KEY][1]
    read, stores = alignment.read_logs, list[int]()

    def read_too_late(spark: SparkSession, kafka: Client, pairs: Sequence[StorePair], paced: None) -> DataFrame:
        stores.append(len(pairs))
        is_seen = sf.col("is_green") | (sf.col("timestamp") != second)
        return read(spark, kafka, pairs, paced).filter(is_seen if len(stores) == 1 else sf.lit(True))

    monkeypatch.setattr(alignment, "read_logs", read_too_late)
    copies = placed(copied(RECORDS), STORE_TYPE, 8)
    wrong = changed(copies, of_key(copies, changelog_key(STORE_TYPE, 10))[-1], value=b"other")
    pairs = [
        pair_of(
            write_log(client, f"{unique}-blue-{store}", 4, placed(RECORDS, STORE_TYPE, 4)),
            write_log(client, f"{unique}-green-{store}", 8, green),
            STORE_TYPE,
            store=store,
        )
        for store, green in {"right": copies, "wrong": wrong}.items()
    ]

    reports = compare_stores(spark, client, pairs)

    assert [report.failures for report in reports] == [{}, {Oracle.STATE: 1}]
    assert [len(report.findings) for report in reports] == [0, 1]
    assert all(report.blue.records == report.green.records for report in reports), "counts of the last reading"
    assert stores == [2, *[1] * 6], "two more readings of the right store, and four of the other one"


@pytest.fixture(scope="module")
def pair(client: Client) -> StorePair:
    """Two logs in which every family of keys has its mistake. Nothing was ever removed from blue's log."""
    records = [record for family in (*FAMILIES.values(), SOUND) for record in family.records]
    blue = write_log(client, "mutations-blue", 4, placed(records, STORE_TYPE, 4))
    wrong = [
        each for mistake, of in FAMILIES.items() for each in mistake(of, placed(copied(of.records), STORE_TYPE, 8))
    ]
    sound = placed(copied(SOUND.records), STORE_TYPE, 8)
    green = write_log(client, "mutations-green", 8, [*wrong, *sound], transactional=True)
    return pair_of(blue, green, STORE_TYPE)


@pytest.fixture(scope="module", params=["of a stopped blue", "beside a live blue", "as a last delta"])
def report(request: pytest.FixtureRequest, spark: SparkSession, client: Client, pair: StorePair) -> StoreReport:
    """The findings of verify, of the proof before the promotion, and of the comparison of the last delta."""
    if request.param == "as a last delta":
        return as_a_delta(client, pair)
    if request.param == "of a stopped blue":
        return compare_store(spark, client, pair)
    fenced = pair.model_copy(update={"fence": dict(enumerate(pair.blue.ends))})
    (found,) = prove_stores(spark, client, [fenced], [BesideBlue(lambda _: set(), lambda: False)])
    assert found.excused == 0
    return found


def as_a_delta(client: Client, pair: StorePair) -> StoreReport:
    """Compare both logs as one stretch of the rolling proof: without Spark, by other code for the same oracles."""
    ends = {log.topic: dict(enumerate(log.ends)) for log in (pair.blue, pair.green)}
    begins = {topic: dict.fromkeys(of, 0) for topic, of in ends.items()}
    fences = Fences(
        begun=begins,
        green_begun=begins,
        fence=begins,
        green_ends=ends,
        green_begins=begins,
        green_topics={},
        blue_ends=ends,
        as_of_ms=0,
        copied_as_of_ms=dict.fromkeys(ends, now_ms()),
    )
    move = changelog("mutations", STORE_TYPE, pair.blue.partitions, pair.green.partitions)
    move = move.model_copy(update={"store": pair.store, "source": pair.blue.topic, "target": pair.green.topic})
    now = fences.model_copy(
        update={"blue_ends": {move.source: ends[move.source]}, "green_ends": {move.target: ends[move.target]}}
    )
    stretch = Stretch(fences, now, is_last=True)
    connection, plan = KafkaConnection(dict(client)), plan_of("mutations", move)
    (found,) = compare_stretch(connection, plan, stretch, compared_topics(connection, plan))
    return found


@pytest.mark.parametrize(
    ("mistake", "oracle", "number", "detail"),
    MUTATIONS,
    ids=[f"{m.__name__}-{o.name.lower()}-{i}" for i, (m, o, _, _) in enumerate(MUTATIONS)],
)
def test_a_mistake_is_found_and_named(
    report: StoreReport, mistake: Mistake, oracle: Oracle, number: int, detail: str
) -> None:
    key = FAMILIES[mistake].numbered(number)
    found = [f for f in report.findings if f.oracle is oracle and f.key == key.hex()]
    assert not report.passed
    assert report.failures[oracle] >= 1
    assert found, report.findings
    assert detail in found[0].detail
    assert "@" in found[0].blue + found[0].green


def test_of_keys_without_a_mistake_nothing_is_found(report: StoreReport) -> None:
    """No finding was left out of the list, so each finding belongs to the family of a mistake."""
    assert sum(report.failures.values()) == len(report.findings)
    assert not {f.key for f in report.findings} & {r.key.hex() for r in SOUND.records}


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
