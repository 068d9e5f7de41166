"""How many producers copy. Each attempt takes over all ids of earlier attempts, so a zombie keeps none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.core.plan.producers import MOST_PRODUCERS, after_rollback, with_producers
from kafka_rescale.kafka.copy.units import units_of

from tests.unit.plan.test_plan import plan


def moves(*counts: int) -> list[Move]:
    named: dict[str, Any] = {"kind": MoveKind.CHANGELOG, "target_partitions": 8}
    return [
        Move(**named, source=f"s{i}", target=f"t{i}", store=f"s{i}", source_partitions=count)
        for i, count in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counts", "numbers"),
    [
        ((4,), [4]),
        ((64,), [64]),
        ((4000,), [64]),
        ((10, 3990), [10, 54]),
        ((1000, 1000, 1000), [21, 21, 21]),
        ((1,) * 100, [1] * 100),
        ((4000,) * 100, [1] * 100),
        ((), []),
    ],
)
def test_there_are_as_many_producers_as_the_work_needs(counts: tuple[int, ...], numbers: list[int]) -> None:
    found = [m.producers for m in with_producers(moves(*counts))]
    assert found == numbers
    assert sum(found) <= max(MOST_PRODUCERS, len(counts))


def test_every_kind_of_topic_of_a_stage_has_its_own() -> None:
    wide = plan(100, 200)
    assert {(m.kind, m.producers) for m in wide.moves} == {
        (MoveKind.CHANGELOG, MOST_PRODUCERS),
        (MoveKind.REPARTITION, MOST_PRODUCERS),
    }
    assert {m.producers for m in plan(4, 8).moves} == {4}


def test_the_order_of_the_moves_stays_whatever_their_kinds() -> None:
    first, second, third = moves(40, 40, 40)
    mixed = [first, second.model_copy(update={"kind": MoveKind.REPARTITION}), third]
    assert [(m.source, m.producers) for m in with_producers(mixed)] == [("s0", 32), ("s1", 40), ("s2", 32)]


def test_a_plan_of_an_earlier_version_goes_on_with_a_producer_per_partition() -> None:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k != "producers"}
        return [without(v) for v in value] if isinstance(value, list) else value

    now = plan(100, 200)
    before = Plan.model_validate(without(json.loads(now.model_dump_json())))
    assert ids(before) == {
        f"kafka-rescale-{before.green}-{m.source}-{p}" for m in before.moves for p in range(100)
    }
    assert before.fingerprint == now.fingerprint, "an expansion in progress is gone on with"


def ids(of: Plan) -> set[str]:
    return {unit.transactional_id(of.green) for unit in units_of(of.moves)}


def numbered(of: Plan, **numbers: int) -> Plan:
    """A plan with these numbers of producers, by store."""
    stages = tuple(
        Stage(
            **{**dict(s), "moves": [m.model_copy(update={"producers": numbers.get(m.store, 1)}) for m in s.moves]}
        )
        for s in of.stages
    )
    return of.model_copy(update={"stages": stages})


@pytest.mark.parametrize("number", [0, 1, 7, 64, 100])
def test_after_a_rollback_every_id_of_the_attempts_before_is_taken(number: int) -> None:
    """Processes of those attempts may wake up late.

    Another version with another limit may have set the old number.
    """
    before = numbered(plan(100, 200), **{"per-region": number, "per-customer": number})
    after = after_rollback(plan(100, 300), before)
    assert {m.store: m.producers for m in after.changelogs} == {"per-region": number, "per-customer": number}
    assert ids(before) == ids(after)


def test_of_a_topic_that_the_plan_before_had_not_every_possible_id_is_taken() -> None:
    """An attempt before that plan may have copied this topic."""
    wide = plan(100, 200)
    without = wide.model_copy(update={"stages": wide.stages[1:]})
    after = after_rollback(wide, without)
    assert {m.store: m.producers for m in after.changelogs} == {"per-region": 0, "per-customer": 64}
    assert ids(after) >= ids(wide)


def test_of_another_generation_nothing_is_known() -> None:
    in_place = plan(100, 200).model_copy(update={"green": "orders-app"})
    assert {m.producers for m in after_rollback(plan(100, 200), in_place).moves} == {0}
