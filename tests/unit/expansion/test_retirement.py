"""What may be deleted: everything that earlier generations have left, and nothing that is in use."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription, TopicDescription
from kafka_rescale.core.control.generations import promoted_generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.retirement import remains
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion import retire as operation
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.application_files import CHAIN
from tests.support.expansion.retired_world import after, chain, internal_topics, plan_of
from tests.support.plans import in_place_application

NAME = str(CHAIN["application_id"])
APPLICATION = chain(NAME)
SECOND, THIRD = f"{NAME}-g2", f"{NAME}-g3"
PLANS = plan_of(APPLICATION, 2), plan_of(APPLICATION, 3)
EXISTING = {t for name in (NAME, SECOND, THIRD) for t in internal_topics(name)} | {f"{NAME}-orders", "totals"}


def found(state: ControlState, existing: Iterable[str] = EXISTING) -> dict[str, list[str]]:
    assert state.journal is not None
    assert state.generations is not None
    named = remains(APPLICATION, topology_of(APPLICATION), state.generations, state.journal.plan, set(existing))
    return {each.application_id: list(each.topics) for each in named}


def with_generations(state: ControlState, **changes: Any) -> ControlState:
    assert state.generations is not None
    return state.model_copy(update={"generations": state.generations.model_copy(update=changes)})


BOTH = {NAME: internal_topics(NAME), SECOND: internal_topics(SECOND)}


def test_every_earlier_generation_is_named_the_oldest_first() -> None:
    named = found(after(*PLANS))
    assert named == BOTH
    assert list(named) == [NAME, SECOND]


def test_one_without_topics_is_not_named() -> None:
    assert found(after(*PLANS), EXISTING - set(internal_topics(NAME))) == {SECOND: internal_topics(SECOND)}


def test_topics_of_others_whose_names_begin_alike_are_none_of_it() -> None:
    others = {
        f"{NAME}-two-per-customer-changelog",
        f"{SECOND}-other-changelog",
        f"{NAME}-g20-per-customer-changelog",
    }
    assert found(after(*PLANS), EXISTING | others) == BOTH


def test_before_it_was_recorded_the_topology_says_what_the_topics_are_called() -> None:
    assert found(with_generations(after(*PLANS), left={})) == BOTH


def test_a_name_that_the_program_does_not_have_any_more_is_known_from_the_promotion() -> None:
    """Generated indexes shift when a program changes, and the topology has only today's names."""
    old = f"{NAME}-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"
    state = with_generations(after(*PLANS), left={NAME: (old,), SECOND: tuple(internal_topics(SECOND))})
    assert found(state, EXISTING | {old})[NAME] == [old]


def test_what_the_running_generation_or_a_bridge_uses_is_never_named() -> None:
    bridged = Move(
        kind=MoveKind.INPUT,
        source=f"{NAME}-old-input",
        target=f"{NAME}-new-input",
        store="input",
        source_partitions=4,
        target_partitions=8,
    )
    plan = PLANS[1]
    stage = plan.stages[0].model_copy(update={"bridges": (bridged,)})
    bridging = after(PLANS[0], plan.model_copy(update={"stages": (stage, *plan.stages[1:])}))
    used = [*internal_topics(THIRD), bridged.source, bridged.target, f"{NAME}-orders", "totals", f"{NAME}-p8"]
    state = with_generations(
        bridging, inputs={f"{NAME}-orders": f"{NAME}-p8"}, left={NAME: (*used, *internal_topics(NAME))}
    )
    assert found(state, EXISTING | set(used)) == BOTH


def test_after_a_growth_in_place_the_generations_before_it_are_named() -> None:
    growth = plan_of(in_place_application(), 3, blue=SECOND)
    assert growth.is_in_place
    assert found(after(plan_of(APPLICATION, 2), growth)) == {NAME: internal_topics(NAME)}


def test_what_was_left_is_known_over_several_promotions_and_so_is_what_was_retired() -> None:
    state = after(*PLANS)
    assert state.generations is not None
    assert {name: sorted(topics) for name, topics in state.generations.left.items()} == BOTH
    retired = with_generations(after(PLANS[0]), retired=("earlier",)).generations
    assert promoted_generations(Journal(plan=PLANS[1]), retired).retired == ("earlier",)


class TestNextOneRolledBack:
    """Generations that were replaced long ago can go, even if there was no room for the next generation."""

    @pytest.fixture(params=["blue_green", "in_place"])
    def state(self, request: pytest.FixtureRequest) -> ControlState:
        growth = plan_of(in_place_application(), 3, blue=SECOND)
        plan = growth if request.param == "in_place" else PLANS[1]
        attempt = Journal(plan=plan, phase=Phase.ROLLED_BACK, rollback_reason="the disks are full")
        return after(PLANS[0]).model_copy(update={"journal": attempt})

    def test_those_before_the_running_one_go_and_its_copies_stay(
        self, state: ControlState, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = World(state)
        assert retire(world, monkeypatch, dry_run=True) == {NAME: internal_topics(NAME)}
        assert retire(world, monkeypatch) == {NAME: internal_topics(NAME)}
        assert world.topics == EXISTING - set(internal_topics(NAME))
        # Groups of the running generation's copies stay, because a new run continues from their positions.
        assert world.deleted_groups == [NAME, f"{NAME}-rescale-2", f"{NAME}-in-place-2"]
        assert world.state.journal == state.journal
        assert world.state.generations is not None
        assert (world.state.generations.retired, world.state.generations.left) == ((NAME,), {})

    def test_what_runs_is_not_named_whatever_it_is_called_today(self, state: ControlState) -> None:
        """Generated indexes shift when a program changes.

        The running topics are those that the attempt should copy.
        """
        assert state.journal is not None
        plan = state.journal.plan
        move = plan.moves[0].model_copy(update={"source": f"{NAME}-shifted-changelog"})
        stage = plan.stages[0].model_copy(update={"moves": (move,)})
        journal = state.journal.model_copy(update={"plan": plan.model_copy(update={"stages": (stage,)})})
        shifted = with_generations(state, left={NAME: (move.source, *internal_topics(NAME))})
        assert found(shifted.model_copy(update={"journal": journal}), EXISTING | {move.source}) == {
            NAME: internal_topics(NAME)
        }

    def test_while_one_of_them_runs_nothing_is_deleted(
        self, state: ControlState, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = World(state, alive=NAME)
        with pytest.raises(Refused, match=f"application {NAME}: found a running instance"):
            retire(world, monkeypatch)
        assert world.topics == EXISTING


def test_after_the_first_attempt_of_all_was_rolled_back_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ControlState(journal=Journal(plan=PLANS[0], phase=Phase.ROLLED_BACK)))
    with pytest.raises(Refused, match="found phase rolled_back"):
        retire(world, monkeypatch)
    assert (world.topics, world.deleted_groups) == (EXISTING, [])


class World:
    """Topics and groups that can be deleted until the process dies."""

    def __init__(self, state: ControlState, alive: str = "") -> None:
        self.state, self.alive = state, alive
        self.topics, self.deleted_groups = set(EXISTING), list[str]()
        self.dies = False

    def rescale(self, *_: Any) -> Any:
        admin = SimpleNamespace(
            list_topics=lambda: set(self.topics),
            existing_topics=lambda names: {n: TopicDescription(n, 4, 1) for n in names},
            describe_group=lambda g: (
                GroupDescription(g, "Stable", ("m",)) if g == self.alive else GroupDescription(g, "Empty")
            ),
            delete_topics=self._delete_topics,
            delete_group=self.deleted_groups.append,
        )
        lifecycle = SimpleNamespace(is_running=lambda _: False)
        control = SimpleNamespace(read=lambda: self.state, update=self._update)
        nobody: Any = None
        parts: Any = (admin, control, lifecycle)
        return Rescale(APPLICATION, nobody, *parts, owner="test")

    def _delete_topics(self, names: Iterable[str]) -> None:
        if self.dies:
            raise KeyboardInterrupt
        self.topics -= set(names)

    def _update(self, change: Any) -> ControlState:
        self.state = self.state.model_copy(update=change(self.state))
        return self.state


def retire(world: World, monkeypatch: pytest.MonkeyPatch, **options: bool) -> dict[str, list[str]]:
    monkeypatch.setattr(Rescale, "open", world.rescale)
    nobody: Any = None
    return operation.retire(APPLICATION, nobody, owner="test", **options)


def test_all_of_them_are_deleted_and_known_as_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(after(*PLANS))
    assert retire(world, monkeypatch) == BOTH
    assert world.topics == EXISTING - {t for topics in BOTH.values() for t in topics}
    assert {NAME, SECOND, f"{NAME}-rescale-2", f"{NAME}-rescale-3"} <= set(world.deleted_groups)
    assert THIRD not in world.deleted_groups
    assert world.state.generations is not None
    assert (world.state.generations.retired, world.state.generations.left) == ((NAME, SECOND), {})
    assert retire(world, monkeypatch) == {}


def test_a_dry_run_names_them_and_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(after(*PLANS))
    assert retire(world, monkeypatch, dry_run=True) == BOTH
    assert (world.topics, world.deleted_groups, world.state) == (EXISTING, [], after(*PLANS))


def test_a_run_that_was_killed_is_followed_by_one_that_knows_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(after(*PLANS))
    world.dies = True
    with pytest.raises(KeyboardInterrupt):
        retire(world, monkeypatch)
    world.dies = False
    assert retire(world, monkeypatch) == BOTH


@pytest.mark.parametrize("alive", [NAME, SECOND])
def test_while_one_of_them_runs_nothing_is_deleted(alive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(after(*PLANS), alive)
    with pytest.raises(Refused, match=f"application {alive}: found a running instance"):
        retire(world, monkeypatch)
    assert (world.topics, world.deleted_groups) == (EXISTING, [])


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.COMPLETE])
def test_before_the_last_expansion_is_complete_nothing_is_deleted(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(after(*PLANS, phase=phase))
    with pytest.raises(Refused, match="Finish the expansion first"):
        retire(world, monkeypatch)
    assert (world.topics, world.deleted_groups) == (EXISTING, [])
