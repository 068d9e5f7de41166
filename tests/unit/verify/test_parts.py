"""Parts of a store: no key is in two parts, together they are the whole store, and their reports add up."""

from __future__ import annotations

from itertools import product

import pytest
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.verify import parts as module
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.parts import Part, ProofProgress, parts_of, report_of, together
from kafka_rescale.core.verify.report import MAX_FINDINGS, LogCount, PartitionContent, StoreReport

from tests.integration.copy_helpers import plan_of
from tests.support.verify.proofs import fences_of

COUNTS = [(4, 8), (8, 4), (4, 6), (3, 6), (6, 9), (4, 5), (1, 7)]


def move(source: int, target: int, partitioner: str = "murmur2") -> Move:
    return Move(
        kind=MoveKind.CHANGELOG,
        source="b",
        target="g",
        store="totals",
        store_type="key-value",
        source_partitions=source,
        target_partitions=target,
        partitioner=partitioner,
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_RECORDS", 1)


@pytest.mark.parametrize(("source", "target"), COUNTS)
@pytest.mark.usefixtures("small")
def test_every_key_has_both_its_partitions_in_the_same_part(source: int, target: int) -> None:
    parts = of(move(source, target))
    partition = partitioner_named("murmur2").partition
    for n in range(500):
        key = b"key-%d" % n
        homes = [[p for p in parts if p.has(partition(key, count))] for count in (source, target)]
        assert homes[0] == homes[1]
        assert len(homes[0]) == 1


@pytest.mark.parametrize(("source", "target"), COUNTS)
@pytest.mark.usefixtures("small")
def test_every_partition_is_read_by_one_part(source: int, target: int) -> None:
    pair = StorePair(store="totals", store_type="key-value", blue=log("b", source), green=log("g", target))
    narrowed = [part.narrowed(pair) for part in of(move(source, target))]
    for side, count in (("blue", source), ("green", target)):
        for p in range(count):
            ranges = [getattr(each, side).ranges[p] for each in narrowed]
            assert sorted(r for r in ranges if r.begin < r.end) == [LogRange(2, 9)]
            assert {r.end for r in ranges} == {9}
            assert [part.own(dict.fromkeys(range(count), 9)).get(p) for part in of(move(source, target))].count(
                9
            ) == 1


def test_a_small_store_is_one_part_and_a_large_one_has_as_many_as_its_counts_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(of(move(4, 8))) == 1
    for records, wanted in ((10, 4), (20, 2), (39, 2), (40, 1)):
        monkeypatch.setattr(module, "PART_RECORDS", records)
        assert len(of(move(4, 8))) == wanted, "8 partitions with 5 records each"
    monkeypatch.setattr(module, "PART_RECORDS", 1)
    assert [len(of(move(*counts))) for counts in COUNTS] == [4, 4, 2, 3, 3, 1, 1]


def test_the_reports_of_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_RECORDS", 20)
    plan = plan_of("shop", move(4, 8))
    fences = fences_of(Journal(plan=plan))
    first, second = (report(n) for n in (1, 2))

    (whole,) = report_of({"totals/1 of 2": first, "totals/2 of 2": second}, plan, fences)

    assert (whole.blue.records, whole.green.live, whole.expired, whole.excused) == (3, 30, 3, 3)
    assert whole.failures == {Oracle.STATE: 3}
    assert len(whole.findings) == MAX_FINDINGS
    assert [p.blue_hash for p in whole.partitions] == ["0000000300000000", "0000000300000000"]
    assert whole.blue_partitions == (3, 3, 3, 3)


def test_what_a_proof_in_progress_notes_grows_with_the_partitions_and_not_with_the_parts() -> None:
    """500 partitions become 1,000, and 2 000 000 000 records are compared in 100 parts: it was 10.7 MiB."""
    parts = [Part(store="totals", number=n, count=100, modulus=500) for n in range(100)]
    done = {part.name: part.shortened(one_part(part, 500, 1_000)) for part in parts}
    progress = ProofProgress(
        plan="p", attempt=1, fences=fences_of(Journal(plan=plan_of("s", move(500, 1_000)))), done=done
    )
    assert len(progress.model_dump_json()) < 400_000


@pytest.mark.parametrize(
    "by_earlier_version", [frozenset[int](), frozenset({0}), frozenset({2, 3}), frozenset(range(4))]
)
@pytest.mark.usefixtures("small")
def test_parts_that_an_earlier_version_has_noted_add_up_with_shortened_ones(
    by_earlier_version: frozenset[int],
) -> None:
    plan = plan_of("shop", move(4, 8))
    fences = fences_of(Journal(plan=plan))
    parts = parts_of(plan, fences)
    full = {part.name: one_part(part, 4, 8) for part in parts}
    noted = {p.name: full[p.name] if p.number in by_earlier_version else p.shortened(full[p.name]) for p in parts}
    read = ProofProgress.model_validate_json(
        ProofProgress(plan="p", attempt=1, fences=fences, done=noted).model_dump_json()
    )

    (whole,) = report_of(read.done, plan, fences)

    assert [(p.partition, p.green_live, p.blue_hash) for p in whole.partitions] == [
        (p, 10 + p, f"{p:08x}80000000") for p in range(8)
    ]
    assert whole.blue_partitions == (100, 101, 102, 103)
    for part in parts:
        assert part.shortened(part.widened(noted[part.name], 4)) == part.shortened(full[part.name])


def one_part(part: Part, source: int, target: int) -> StoreReport:
    """The report of a part as a comparison makes it: with every partition of the store."""
    empty = {"blue_live": 0, "green_live": 0, "blue_hash": "0" * 16, "green_hash": "0" * 16}
    partitions = (
        PartitionContent(
            partition=p,
            **{**empty, "green_live": 10 + p, "blue_hash": f"{p:08x}80000000"} if part.has(p) else empty,
        )
        for p in range(target)
    )
    blue = tuple(100 + p if part.has(p) else 0 for p in range(source))
    changes = {"partitions": tuple(partitions), "blue_partitions": blue, "failures": {}, "findings": ()}
    return report(1).model_copy(update=changes)


def report(n: int) -> StoreReport:
    found = KeyFinding(oracle=Oracle.STATE, subject="totals", detail="live in blue, missing in green", key="6b")
    content = {"blue_live": n, "green_live": n, "blue_hash": f"{n:08x}80000000", "green_hash": "0" * 16}
    return StoreReport(
        store="totals",
        store_type="key-value",
        blue_topic="b",
        green_topic="g",
        blue=LogCount(records=n, live=n),
        green=LogCount(records=n, live=10 * n),
        expired=n,
        surplus=0,
        partitions=tuple(PartitionContent(partition=p, **content) for p in range(2)),
        blue_partitions=(n,) * 4,
        excused=n,
        failures={Oracle.STATE: n},
        findings=(found,) * MAX_FINDINGS,
    )


def of(each: Move) -> tuple[Part, ...]:
    """The parts of a store. Each of its partitions has 5 records."""
    plan = plan_of("shop", each)
    return parts_of(plan, fences_of(Journal(plan=plan)))


def log(topic: str, partitions: int) -> ComparedLog:
    return ComparedLog(topic=topic, partitions=partitions, ranges={p: LogRange(2, 9) for p in range(partitions)})


def stores(*sizes: int, **changes: object) -> tuple[list[Part], dict[str, Move]]:
    """Parts of these sizes, and the moves of their stores."""
    parts = [Part(store=f"s{n}", records=size) for n, size in enumerate(sizes)]
    return parts, {part.store: move(4, 8).model_copy(update={"store": part.store, **changes}) for part in parts}


def test_small_stores_share_a_plan_and_a_large_one_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_RECORDS", 100)
    assert [[p.records for p in batch] for batch in together(*stores(0, 40, 60, 1, 100, 99))] == [
        [0, 40, 60],
        [1],
        [100],
        [99],
    ]
    assert [len(batch) for batch in together(*stores(*[0] * 40))] == [16, 16, 8]
    assert together(*stores()) == ()


def test_stores_that_are_read_in_other_ways_share_no_plan() -> None:
    parts, moves = stores(1, 1, 1, 1)
    left = LeftTable(partitioner="linear-hashing:2", source_partitions=4, target_partitions=8)
    for store, changes in (("s0", {"left": left}), ("s2", {"grown_from": (2,)}), ("s3", {"partitioner": "crc32"})):
        moves[store] = moves[store].model_copy(update=changes)
    assert [[p.store for p in batch] for batch in together(parts, moves)] == [["s1", "s3"], ["s2"], ["s0"]]


@pytest.mark.usefixtures("small")
def test_two_parts_of_a_store_are_never_in_one_plan() -> None:
    parts = of(move(4, 8))
    assert together(parts, {"totals": move(4, 8)}) == tuple((part,) for part in parts)


def test_what_is_read_of_a_part_is_the_progress_of_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_RECORDS", 20)
    fences = fences_of(Journal(plan=plan_of("shop", move(4, 8))))
    first, second = of(move(4, 8))
    at = [*first.progress("g", fences, 1.0, is_ours=False), *second.progress("g", fences, 0.6, is_ours=True)]
    assert [(p.partition, p.position, p.end, p.records) for p in at] == [
        *((p, 5, 5, 0) for p in (0, 2, 4, 6)),
        *((p, 3, 5, 3) for p in (1, 3, 5, 7)),
    ]


def test_parts_have_names_of_their_own() -> None:
    names = [Part(store=s, number=n, count=2).name for s, n in product(("a", "b"), range(2))]
    assert names == ["a/1 of 2", "a/2 of 2", "b/1 of 2", "b/2 of 2"]
