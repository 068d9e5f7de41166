"""The rolling proof on real logs: every store type, a copy that goes on, and mistakes in the last delta."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import pytest
from confluent_kafka import Message, Producer
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.verify.delta import DeltaRules
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.promotable import assert_no_findings
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.fences import read_fences
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.reset import restart
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.verify import delta, rolling, stretch
from kafka_rescale.kafka.verify.delta import StoreDelta, compare_stretch, compared_topics
from kafka_rescale.kafka.verify.rolling import RollingComparison
from kafka_rescale.kafka.verify.spool import Spool
from kafka_rescale.kafka.verify.stretch import Ranges, Stretch

from testbed.processes import wait_until
from testbed.removal import DELETABLE
from tests.integration.copy_helpers import changelog, ends_of, expected_partition, plan_of
from tests.support.changelogs import Placed, Record, append, history, placed
from tests.support.verify.busy_blue import EAGER, busy

pytestmark = pytest.mark.integration

BLUE, GREEN = 4, 8
SUBSCRIPTIONS = "foreign-key-subscription"
EXTRACTORS = {"processor": "drop-last-12"}
KEPT = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)}


@dataclass
class Store:
    """A changelog of some type. Half of it is copied when the first fence is read."""

    connection: KafkaConnection
    plan: Plan
    records: Sequence[Record]

    @property
    def move(self) -> Move:
        return self.plan.changelogs[0]

    def write(self, records: Sequence[Record], green: bool = False) -> None:
        """Write each record to the partition where it belongs."""
        count, topic = (GREEN, self.move.target) if green else (BLUE, self.move.source)
        append(self.connection.config, topic, self.placed(records, count))

    def placed(self, records: Sequence[Record], count: int) -> list[Placed]:
        of = "timestamped-window" if self.move.store_type == "processor" else self.move.store_type
        return placed(records, of, count)

    def copy(self) -> None:
        """Copy up to the present ends, as a task does."""
        worker = CopyWorker(self.connection, self.plan, units_of([self.move]))
        try:
            worker.begin()
            worker.run_to(ends_of(self.connection, self.move), now_ms())
            worker.announce("a test")
        finally:
            worker.close()

    def pass_by(self) -> None:
        """Let the copy commit a position past records that it has not written."""
        worker = CopyWorker(self.connection, self.plan, units_of([self.move]))
        try:
            worker.begin()
            for source, writer in worker.writers.items():
                ends = ends_of(self.connection, self.move)
                writer.commit_at(worker._consumer, replace(writer.restart, offset=ends[source]))
        finally:
            worker.close()

    @property
    def ends(self) -> dict[str, dict[int, int]]:
        return ClusterAdmin(self.connection).end_offsets([self.move.source])


def made(connection: KafkaConnection, unique: str, store_type: str) -> Store:
    left = LeftTable(partitioner="murmur2", source_partitions=BLUE, target_partitions=GREEN)
    move = changelog(unique, store_type, BLUE, GREEN).model_copy(
        update={
            "left": left if store_type == SUBSCRIPTIONS else None,
            "partitioning_key": EXTRACTORS.get(store_type, ""),
        }
    )
    admin = ClusterAdmin(connection)
    for topic, count in ((move.source, BLUE), (move.target, GREEN)):
        admin.ensure_topic(topic, count, 1, KEPT)
    of = "timestamped-window" if store_type == "processor" else store_type
    records = history(of, int(time.time() * 1000) - 3_600_000)
    store = Store(connection, plan_of(unique, move), records)
    store.write(records[: len(records) // 2])
    store.copy()
    return store


def compared(connection: KafkaConnection, plan: Plan, stretch: Stretch) -> tuple[StoreReport, ...]:
    return compare_stretch(connection, plan, stretch, compared_topics(connection, plan))


def comparison_of(store: Store, journal: Journal) -> RollingComparison:
    return RollingComparison(ControlTopic(store.connection, journal.plan.application), journal)


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(dict(client))


@pytest.fixture
def totals(connection: KafkaConnection, unique: str) -> Store:
    return made(connection, unique, "timestamped-key-value")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(rolling, "KEPT_SECONDS", 0.2)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topic of each record that a comparison reads."""
    real, read = stretch.read_ranges, list[str]()

    def noted(connection: KafkaConnection, topic: str, ranges: Ranges, **how: bool) -> Iterator[Message]:
        for message in real(connection, topic, ranges, **how):
            read.append(topic)
            yield message

    monkeypatch.setattr(stretch, "read_ranges", noted)
    return read


@pytest.mark.parametrize("store_type", FORMATS)
def test_right_copies_of_every_store_type_pass_stretch_by_stretch(
    connection: KafkaConnection, unique: str, store_type: str
) -> None:
    store = made(connection, unique, store_type)
    half = len(store.records) // 2
    fences = [read_fences(connection, store.plan)]
    for at in range(half, len(store.records), 12):
        store.write(store.records[at : at + 12])
        store.copy()
        fences.append(read_fences(connection, store.plan))

    reports = [compared(connection, store.plan, Stretch(before, now))[0] for before, now in pairwise(fences)]

    assert [r.failures for r in reports] == [{}] * len(reports)
    assert sum(r.green.records for r in reports) == len(store.records) - half


@pytest.mark.parametrize(
    ("change", "oracle", "shift"),
    [
        ({"value": b"another"}, Oracle.STATE, 0),
        # In `make test`, test_verify_mutations.py has each of these for the same comparison, "as a last delta".
        pytest.param({"value": None}, Oracle.STATE, 0, marks=pytest.mark.slow),
        pytest.param({"timestamp": 1_700_000_000_001}, Oracle.STATE, 0, marks=pytest.mark.slow),
        pytest.param({"headers": (("more", b""),)}, Oracle.STATE, 0, marks=pytest.mark.slow),
        pytest.param({}, Oracle.PLACEMENT, 1, marks=pytest.mark.slow),
        pytest.param({"key": b"nobody's"}, Oracle.TOMBSTONES, 0, marks=pytest.mark.slow),
        ({"key": b"nobody's", "value": None}, Oracle.STATE, 0),
    ],
    ids=["value", "deletion", "timestamp", "header", "misplaced", "invented", "deletion of nothing"],
)
@pytest.mark.usefixtures("quick")
def test_what_is_put_into_the_last_delta_is_found_by_its_key(
    totals: Store, change: dict[str, object], oracle: Oracle, shift: int
) -> None:
    journal = Journal(plan=totals.plan, phase=Phase.QUIESCED)
    with_proof = begun(totals, journal)
    totals.write(totals.records[len(totals.records) // 2 :])
    totals.copy()
    alive = next(r for r in reversed(totals.records) if r.value is not None)
    wrong = replace(alive, **change)  # type: ignore[arg-type]
    ((home, _),) = totals.placed([wrong], GREEN)
    append(totals.connection.config, totals.move.target, [((home + shift) % GREEN, wrong)])

    found = with_proof.finish(totals.ends)

    # The thread may already have compared the right records. Then the last stretch has only the wrong one.
    alone = Oracle.STATE if wrong.value is None else Oracle.TOMBSTONES
    assert {oracle, alone} & {f.oracle for f in found.findings}
    assert {f.key for f in found.findings} == {wrong.key.hex()}
    with pytest.raises(UnsafeState, match=f"key 0x{wrong.key.hex()}"):
        assert_no_findings(found, ControlTopic(totals.connection, totals.plan.application).read().acceptances)


@pytest.mark.parametrize("value", [b"value", None], ids=["value", "deletion"])
@pytest.mark.usefixtures("quick")
def test_what_the_copy_passes_by_is_found(totals: Store, value: bytes | None) -> None:
    with_proof = begun(totals, Journal(plan=totals.plan, phase=Phase.QUIESCED))
    lost = replace(totals.records[0], value=value, timestamp=totals.records[-1].timestamp)
    totals.write([lost])
    totals.pass_by()

    found = with_proof.finish(totals.ends)

    (finding,) = found.findings
    assert (finding.key, finding.green) == (lost.key.hex(), "")


@pytest.mark.usefixtures("quick")
def test_a_right_copy_is_proven_up_to_its_last_record(totals: Store) -> None:
    journal = Journal(plan=totals.plan, phase=Phase.WARMING)
    comparison = begun(totals, journal)
    for at in range(len(totals.records) // 2, len(totals.records), 6):
        totals.write(totals.records[at : at + 6])
        totals.copy()
    found = comparison.finish(totals.ends)
    assert found.violations == 0
    assert found.has_reached(totals.ends)
    assert found.is_about(journal)
    assert found.records >= len(totals.records)


def test_a_stretch_without_offsets_asks_no_broker_and_one_with_a_record_does(
    totals: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_fences(totals.connection, totals.plan)
    asked, real = list[Move](), StoreDelta._read

    def noted(store: StoreDelta, blue: Spool, green: Spool, keys: Set[bytes] | None) -> DeltaRules:
        asked.append(store.move)
        return real(store, blue, green, keys)

    monkeypatch.setattr(StoreDelta, "_read", noted)
    now = read_fences(totals.connection, totals.plan)
    (report,) = compared(totals.connection, totals.plan, Stretch(before, now))
    assert (report.passed, report.blue.records, asked) == (True, 0, [])

    # Only green has a record: the copy has never written it.
    totals.write([replace(totals.records[-1], value=b"another")], green=True)
    now = read_fences(totals.connection, totals.plan)
    (wrong,) = compared(totals.connection, totals.plan, Stretch(before, now))
    assert asked
    assert wrong.findings


def test_what_is_not_copied_yet_is_not_read(totals: Store, readings: list[str]) -> None:
    half = len(totals.records) // 2
    before, rest = read_fences(totals.connection, totals.plan), len(totals.records) - half
    totals.write(totals.records[half:])
    backlog = read_fences(totals.connection, totals.plan)
    (nothing,) = compared(totals.connection, totals.plan, Stretch(before, backlog))
    assert (readings, nothing.failures, nothing.excused) == ([], {}, 0)

    # What comes next is compared record by record, and an invented record is found beside a backlog.
    totals.copy()
    copied = read_fences(totals.connection, totals.plan)
    totals.write(totals.records)
    wrong = replace(totals.records[-1], key=b"nobody's")
    totals.write([wrong], green=True)
    (right,) = compared(totals.connection, totals.plan, Stretch(backlog, copied))
    assert (right.failures, right.blue.records, right.green.records) == ({}, rest, rest)
    beside = Stretch(copied, read_fences(totals.connection, totals.plan))
    (found,) = compared(totals.connection, totals.plan, beside)
    assert {f.key for f in found.findings} == {wrong.key.hex()}


def test_a_long_stretch_is_compared_part_by_part(totals: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_fences(totals.connection, totals.plan)
    totals.write(totals.records[len(totals.records) // 2 :])
    totals.copy()
    now = read_fences(totals.connection, totals.plan)
    (whole,) = compared(totals.connection, totals.plan, Stretch(before, now))
    monkeypatch.setattr(delta, "RECORDS_AT_ONCE", 8)

    (report,) = compared(totals.connection, totals.plan, Stretch(before, now))

    assert report == whole
    totals.write([replace(totals.records[-1], value=b"another")], green=True)
    later = Stretch(before, read_fences(totals.connection, totals.plan))
    (wrong,) = compared(totals.connection, totals.plan, later)
    assert {f.key for f in wrong.findings} == {totals.records[-1].key.hex()}


@pytest.mark.usefixtures("quick")
def test_a_job_that_is_begun_again_goes_on_where_the_last_one_was(totals: Store) -> None:
    journal = Journal(plan=totals.plan, phase=Phase.WARMING)
    control = ControlTopic(totals.connection, totals.plan.application)
    first = newest(begun(totals, journal))
    control.update(lambda _: {"rolling-proof": first})
    totals.write(totals.records[len(totals.records) // 2 :])
    totals.copy()

    found = comparison_of(totals, journal).finish(totals.ends)

    assert (found.began, found.stretches) == (first.began, first.stretches + 1)
    assert found.stores[0].green.records == len(totals.records) - len(totals.records) // 2

    restart(totals.connection, totals.plan, totals.move, Mark(as_of_ms=now_ms(), attempt=1))
    totals.copy()
    anew = comparison_of(totals, journal).finish(totals.ends)
    assert anew.began == {**totals.ends}, "what was emptied since counts no more"


@pytest.mark.usefixtures("quick")
def test_what_retention_deletes_from_a_copy_is_no_copy_that_was_begun_anew(totals: Store) -> None:
    admin, control = ClusterAdmin(totals.connection), ControlTopic(totals.connection, totals.plan.application)
    for topic in (totals.move.source, totals.move.target):
        admin.alter_configs(topic, DELETABLE)
    journal = Journal(plan=totals.plan, phase=Phase.WARMING)
    first = newest(begun(totals, journal))
    control.update(lambda _: {"rolling-proof": first})
    admin.delete_records(admin.end_offsets([totals.move.target]))

    assert comparison_of(totals, journal).finish(totals.ends).began == first.began

    restart(totals.connection, totals.plan, totals.move, Mark(as_of_ms=now_ms(), attempt=1))
    totals.copy()
    anew = comparison_of(totals, journal).finish(totals.ends)
    assert anew.began == {**totals.ends}, "what was emptied since counts no more"


def test_no_finding_is_false_beside_compaction_and_a_mistake_is_found(eager: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 3, 6)
    admin, plan = ClusterAdmin(eager), plan_of(unique, move)
    for topic, count in ((move.source, 3), (move.target, 6)):
        admin.ensure_topic(topic, count, 1, {"cleanup.policy": "compact", **EAGER})
    with busy(eager, plan, rate=1_500) as blues:
        blue = blues[move.store]
        wait_until(lambda: len(blue.retired) > 60, timeout=120, what="keys that are written no more")
        before, records, touched = read_fences(eager, plan), 0, 0
        for number in range(25):
            now = read_fences(eager, plan)
            (report,) = compared(eager, plan, Stretch(before, now))
            assert report.findings == (), (number, report.failures)
            before, records = now, records + report.green.records
            touched += report.excused or 0
        assert records > 1_000
        assert touched > 0
        key, count = blue.retired[-1], len(blue.retired)
        # On a loaded machine, the copy of its last record may take seconds. Until then, the key is not judged.
        wait_until(lambda: len(blue.retired) > count + 60, timeout=120, what="its last record")
        is_copied = partial(_has_reached, eager, plan, admin.end_offsets([move.source])[move.source])
        wait_until(is_copied, timeout=120, what="its copy", poll_seconds=2)
        producer = Producer(eager.client())
        producer.produce(move.target, b"another value", key, expected_partition("key-value", key, 6))
        producer.flush(30)
        (report,) = compared(eager, plan, Stretch(before, read_fences(eager, plan)))
        assert {f.key for f in report.findings} == {key.hex()}


def _has_reached(connection: KafkaConnection, plan: Plan, ends: dict[int, int]) -> bool:
    (fence,) = read_fences(connection, plan).fence.values()
    return all(fence[p] >= end for p, end in ends.items())


def test_its_thread_ends_with_a_job_that_does_not_finish(totals: Store) -> None:
    before = set(threading.enumerate())
    comparison = begun(totals, Journal(plan=totals.plan))
    (of_it,) = (thread for thread in set(threading.enumerate()) - before if thread.name == "rolling proof")
    comparison.end()
    of_it.join(60)
    assert not of_it.is_alive()


def begun(store: Store, journal: Journal) -> RollingComparison:
    """Begin to compare in the background, beside a copy that goes on."""
    comparison = comparison_of(store, journal)
    comparison.start()
    wait_until(lambda: comparison.has_begun, timeout=60, what="the first fence")
    return comparison


def newest(comparison: RollingComparison) -> RollingProof:
    """Wait for the next result of a comparison."""
    found: list[RollingProof] = []

    def has_come() -> bool:
        if (taken := comparison.take()) is not None and taken.stretches:
            found.append(taken)
        return bool(found)

    wait_until(has_come, timeout=60, what="a stretch that is compared")
    return found[-1]
