"""Growth in place: one rule says what moves, what gets a tombstone, where all starts, what was left behind."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Captured, Journal
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.start_offsets import carried_starts
from kafka_rescale.kafka.copy.router import NOWHERE, Router, to_bury

from tests.support.plans import IN_PLACE_TOPICS, in_place_plan

KEYS = tuple(b"key-%d" % n for n in range(200))
STATIC = "static:tests.support.user_partitioners:pinned"


def move(before: int, after: int, partitioner: str = "murmur2", **changes: object) -> Move:
    fields: dict[str, object] = {
        "kind": MoveKind.CHANGELOG,
        "source": "app-s-changelog",
        "target": "app-s-changelog",
        "store": "s",
        "store_type": "key-value",
        "partitioner": partitioner,
        "source_partitions": before,
        "target_partitions": after,
    }
    return Move.model_validate({**fields, **changes})


def test_the_application_keeps_its_id_and_its_topics_and_they_grow() -> None:
    made = in_place_plan()
    assert made.is_in_place
    assert (made.blue, made.green, made.generation) == ("orders-app", "orders-app", 2)
    assert {(m.source == m.target, m.source_partitions, m.target_partitions) for m in made.moves} == {(True, 4, 8)}
    assert [len(stage.growing) for stage in made.stages] == [2, 2, 0]


def test_a_later_generation_grows_under_the_id_that_it_has() -> None:
    made = in_place_plan(running="orders-app-g2", generation=3)
    assert (made.blue, made.green, made.generation) == ("orders-app-g2", "orders-app-g2", 3)


def test_its_positions_are_not_those_of_an_attempt_beside_the_running_one() -> None:
    """A rolled back attempt of the other mode may have copied the same topics for the same generation number."""
    other = in_place_plan().model_copy(update={"green": "orders-app-g2"})
    assert not other.is_in_place
    assert in_place_plan().copy_group != other.copy_group
    assert in_place_plan().copy_group.startswith("orders-app-"), "an application's prefixed ACL covers it"


@pytest.mark.parametrize(
    ("partitioner", "before", "after"),
    [
        ("murmur2", 4, 8),
        ("murmur2", 4, 6),
        ("crc32", 3, 7),
        ("linear-hashing:4", 4, 6),
        ("linear-hashing:3", 5, 6),
    ],
)
def test_what_moves_is_what_the_partitioner_puts_elsewhere(partitioner: str, before: int, after: int) -> None:
    router, rule = Router(move(before, after, partitioner)), partitioner_named(partitioner)
    for partition in range(before):
        keys = [key for key in KEYS if rule.partition(key, before) == partition]
        homes = [rule.partition(key, after) for key in keys]
        assert router.targets(keys, partition) == [NOWHERE if home == partition else home for home in homes]
        assert NOWHERE in router.targets(keys, partition)


def test_linear_hashing_moves_only_the_keys_of_the_partitions_that_are_split() -> None:
    router, rule = Router(move(4, 6, "linear-hashing:4")), partitioner_named("linear-hashing:4")
    written = {
        partition: {t for t in router.targets([k for k in KEYS if rule.partition(k, 4) == partition], partition)}
        for partition in range(4)
    }
    assert written == {0: {NOWHERE, 4}, 1: {NOWHERE, 5}, 2: {NOWHERE}, 3: {NOWHERE}}


def test_with_a_static_partitioner_nothing_moves() -> None:
    router = Router(move(4, 8, STATIC))
    assert router.targets([key for key in KEYS if int(key[4:]) % 4 == 3], 3) == [NOWHERE] * 50


def test_a_key_that_is_not_where_it_belongs_stops_the_move() -> None:
    with pytest.raises(UnsafeState, match="murmur2 puts into partition"):
        Router(move(4, 8)).targets(KEYS, 0)


def test_every_record_in_flight_is_written_again_also_where_it_stays() -> None:
    given = move(4, 8, kind=MoveKind.REPARTITION, store_type="")
    targets = Router(given).targets([None, b"foobar"], 2)
    assert targets == [2, 6]
    assert Router(given.model_copy(update={"target_partitions": 6})).targets([None], 2) == [2]


def test_a_key_is_buried_once_per_batch_as_of_its_last_value() -> None:
    keys = [b"a", b"b", b"a", b"c", b"b"]
    assert to_bury(keys, [b"1", b"1", b"2", b"1", None]) == [2, 3]
    assert to_bury([], []) == []


class TestAfterAnEarlierGrowth:
    """Records that were left behind stay in the log until they are compacted away, with a tombstone after them."""

    def test_it_is_copied_nowhere(self) -> None:
        key = next(k for k in KEYS if (partitioner_named("murmur2").partition(k, 8)) == 6)
        grown = move(8, 16, grown_from=(4,))
        assert Router(grown).targets([key], 2) == [NOWHERE]
        beside = grown.model_copy(update={"target": "app-g3-s-changelog"})
        assert Router(beside).targets([key], 2) == [NOWHERE]
        assert Router(beside).targets([key], 6) != [NOWHERE]

    def test_without_that_growth_it_would_be_a_key_at_a_wrong_place(self) -> None:
        key = next(k for k in KEYS if (partitioner_named("murmur2").partition(k, 8)) == 6)
        with pytest.raises(UnsafeState):
            Router(move(8, 16)).targets([key], 2)
        with pytest.raises(UnsafeState):
            Router(move(8, 16, grown_from=(4,))).targets([key], 3)

    def test_the_running_generation_remembers_the_counts_until_one_with_other_topics_follows(self) -> None:
        first = promoted_generations(Journal(plan=in_place_plan(4, 6)))
        assert first.running == "orders-app"
        assert first.grown_from == {f"orders-app-{name}": (4,) for name in IN_PLACE_TOPICS}
        again = in_place_plan(6, 8, generation=3, grown_from=first.grown_from)
        assert {m.grown_from for m in again.moves} == {(4,)}
        assert set(promoted_generations(Journal(plan=again), first).grown_from.values()) == {(4, 6)}
        beside = again.model_copy(update={"green": "orders-app-g4"})
        assert promoted_generations(Journal(plan=beside), first).grown_from == {}

    def test_an_older_record_of_generations_can_be_read(self) -> None:
        assert Generations.model_validate_json('{"running": "app"}').grown_from == {}


def test_what_was_in_flight_is_read_again_behind_the_captured_ends() -> None:
    topic = f"app-by{REPARTITION_SUFFIX}"
    captured = Captured(in_flight={topic: {0: (5, 9), 1: (2, 2)}})
    grown = move(2, 4, kind=MoveKind.REPARTITION, source=topic, target=topic)
    assert carried_starts((grown,), captured) == {topic: {0: 9, 1: 2, 2: 0, 3: 0}}
    kept = grown.model_copy(update={"target_partitions": 2})
    assert carried_starts((kept,), captured) == {topic: {0: 5, 1: 2}}


def test_captured_ends_are_those_of_all_internal_topics() -> None:
    captured = Captured(changelog_ends={"a": {0: 3}}, in_flight={"b": {0: (1, 2)}})
    assert captured.ends == {"a": {0: 3}, "b": {0: 2}}


def test_what_was_appended_begins_where_the_application_had_stopped() -> None:
    old = ComparedLog(topic="t", partitions=2, ranges={0: (1, 5), 1: (0, 0)})
    now = ComparedLog(topic="t", partitions=3, ranges={0: (1, 8), 1: (0, 2), 2: (0, 4)})
    pair = StorePair(store="s", store_type="key-value", blue=old, green=now)
    assert pair.is_in_place
    assert pair.appended.ranges == {0: (5, 8), 1: (0, 2), 2: (0, 4)}
