"""Green's processes wait at the door. Whatever is killed, the journal knows of them until they are stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import Fenced, Outage, TimedOut, UnsafeState
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.cutover import held
from kafka_rescale.operations.modes.blue_green import _assert_green_is_cold

from tests.support.expansion.gate_world import PLAN as WITHOUT_INPUTS
from tests.support.small_application import application

ORDERS = InputPlan(topic="orders", policy=InputPolicy.PAUSED, partitioner="murmur2", current=1, target=2)
PLAN = WITHOUT_INPUTS.model_copy(update={"inputs": (ORDERS,)})
GREEN, GATE = PLAN.green, gate_group(PLAN.green)
SHELL = {"type": "shell", "start": "true", "start_held": "true", "stop": "true", "status": "true"}


class Killed(BaseException):
    """The process is killed: nothing that it tries afterwards has any effect."""


@dataclass
class World:
    """The state of green and of the cutover, and what was done to it.

    :param ends_itself: whether green ends as soon as it is started.
    :param is_held: whether it waits at the door. If not, it joins its group.
    :param stops: whether ``stop`` works.
    :param dies_at: number of the call at which the process is killed, counting from 1. 0 is never.
    """

    lifecycle_spec: dict[str, Any] = field(default_factory=lambda: SHELL)
    ends_itself: bool = False
    is_held: bool = True
    stops: bool = True
    dies_at: int = 0
    calls: int = 0
    beats: int = 0
    running: bool = False
    members: bool = False
    seconds: float = 0.0
    offsets: dict[str, PartitionOffsets] = field(default_factory=dict)
    journal: Journal = field(default_factory=lambda: Journal(plan=PLAN))
    done: list[str] = field(default_factory=list)

    @property
    def rescale(self) -> Any:
        lifecycle = SimpleNamespace(
            start_held=self._call("start_held", self._start),
            stop=self._call("stop", self._stop),
            is_running=self._call("", lambda _: self.running),
        )
        admin = SimpleNamespace(
            committed=self._call("", lambda group: self.offsets.get(group, {})),
            commit=self._call("commit", self._commit),
            delete_group=self._call("delete_group", lambda group: self.offsets.pop(group, None)),
            remove_members=self._call("", lambda _: ()),
            groups_like=lambda _: (),
            committed_metadata=self._call("", self._texts),
            describe_group=self._call("", self._described),
        )
        declared = application("shop", lifecycle=self.lifecycle_spec)
        rescale = SimpleNamespace(
            application=declared,
            lifecycle=lifecycle,
            admin=admin,
            journal=self._call("", lambda: self.journal),
            advance=self._call("advance", self._advance),
            change=self._call("advance", self._change),
        )
        rescale.is_alive = lambda _: self.running or self.members
        return rescale

    def start(self) -> Journal:
        """Do what a try of the cutover does before the pause."""
        journal = held.start_held(self.rescale, self.journal)
        held.await_at_door(self.rescale, journal)
        return journal

    def _call(self, name: str, body: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.dies_at and self.calls >= self.dies_at:
                raise Killed
            if name:
                self.done.append(name)
            return body(*arguments, **named)

        return call

    def _start(self, _: Instance) -> None:
        assert self.journal.held, "a process that the journal does not know"
        self.running = not self.ends_itself
        self.members = not self.is_held

    def _stop(self, _: Instance) -> None:
        assert GATE not in self.offsets, "its pass is taken back before"
        self.running = self.running and not self.stops

    def _commit(self, group: str, offsets: PartitionOffsets, _: Any) -> None:
        self.offsets[group] = offsets

    def _texts(self, _: str) -> dict[str, dict[int, str]]:
        self.beats += 1
        return {"x": {0: f"by a1 {self.beats} for {self.journal.held}"}} if self.running else {}

    def _described(self, group: str) -> GroupDescription:
        is_live = group == GREEN and self.members
        return GroupDescription(
            group, "Stable", ("i",) if is_live else ("blue-1-StreamThread-1-consumer-u",) * (group != GREEN)
        )

    def _change(self, change: Callable[[Journal], Journal]) -> Journal:
        self.journal = change(self.journal)
        return self.journal

    def _advance(self, phase: Phase, **changes: Any) -> Journal:
        self.journal = self.journal.advanced(phase, now_ms=1, **changes)
        return self.journal


@pytest.fixture(autouse=True)
def _without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "DOOR_SECONDS", 0.2)
    monkeypatch.setattr(held, "POLL_SECONDS", 0.001)


def test_processes_are_started_with_a_pass_and_waited_for() -> None:
    world = World()
    journal = world.start()
    assert journal.held
    assert world.offsets[GATE] == {
        "orders": {0: journal.held},
        PLAN.moves[0].target: {0: journal.held, 1: journal.held},
    }
    assert world.done == ["advance", "delete_group", "commit", "advance", "start_held"]


def test_without_start_held_nothing_is_done() -> None:
    world = World(lifecycle_spec={k: v for k, v in SHELL.items() if k != "start_held"})
    assert world.start() == world.journal
    assert world.done == []
    assert not held.is_waiting(world.rescale, world.journal)


def test_a_try_that_comes_later_goes_on_with_the_same_pass_and_calls_start_again() -> None:
    world = World()
    first, passes = world.start(), world.offsets[GATE]
    assert world.start().held == first.held
    assert world.offsets[GATE] == passes
    assert "stop" not in world.done


def test_without_its_pass_what_runs_is_stopped_and_started_anew() -> None:
    world = World()
    first = world.start()
    world.offsets.clear()
    assert world.start().held not in {0, first.held}
    assert world.done.count("stop") == 1


def test_killed_at_any_call_the_journal_knows_what_may_run_and_it_can_be_stopped() -> None:
    whole = World()
    whole.start()
    for call in range(1, whole.calls + 1):
        world = World(dies_at=call)
        with pytest.raises(Killed):
            world.start()
        assert world.journal.held or not world.running
        world.dies_at = 0
        held.send_away(world.rescale, world.journal)
        assert not world.running
        assert (world.journal.held, world.offsets) == (0, {})
        assert world.start().held


def test_killed_at_any_call_of_the_stop_it_is_done_by_the_next_try() -> None:
    whole = World()
    whole.start()
    before = whole.calls
    held.send_away(whole.rescale, whole.journal)
    for call in range(1, whole.calls - before + 1):
        world = World()
        world.start()
        world.dies_at = world.calls + call
        with pytest.raises(Killed):
            held.send_away(world.rescale, world.journal)
        world.dies_at = 0
        held.send_away(world.rescale, world.journal)
        assert not world.running
        assert world.journal.held == 0


@pytest.mark.parametrize("found", [{"phase": Phase.PROMOTED}, {"attempt": 2}, {"opening": 7}])
def test_a_try_that_was_frozen_sends_nobody_away(found: dict[str, Any]) -> None:
    """By then green may own the inputs: if it were stopped, nobody would run."""
    world = World()
    before = world.start()
    world.journal = world.journal.model_copy(update=found)
    world.done.clear()
    with pytest.raises(Fenced):
        held.send_away(world.rescale, before)
    assert world.running
    assert world.done == []
    assert world.journal.held


def test_who_has_been_sent_away_already_is_not_stopped_once_more() -> None:
    world = World()
    before = world.start()
    held.send_away(world.rescale, before)
    world.done.clear()
    assert held.send_away(world.rescale, before) == world.journal
    assert world.done == []


def test_an_application_that_can_not_start_is_found() -> None:
    world = World(ends_itself=True)
    with pytest.raises(Outage, match="found an application that has ended by itself") as failed:
        world.start()
    assert "shop was not touched" in str(failed.value)


def test_one_that_never_comes_to_the_door_is_not_waited_for_without_end() -> None:
    world = World()
    world._texts = lambda _: {}  # type: ignore[method-assign]
    with pytest.raises(TimedOut, match="HoldGate"):
        world.start()


def test_a_stop_that_does_not_work_is_told_and_the_pass_is_gone_all_the_same() -> None:
    world = World(stops=False)
    world.start()
    with pytest.raises(UnsafeState, match="a running instance after `stop`"):
        held.send_away(world.rescale, world.journal)
    assert GATE not in world.offsets
    assert world.journal.held


def test_only_what_is_held_may_run_before_the_pause() -> None:
    world = World()
    _assert_green_is_cold(world.rescale, world.journal)
    world.start()
    _assert_green_is_cold(world.rescale, world.journal)
    world.members = True
    with pytest.raises(UnsafeState, match="found a running instance"):
        _assert_green_is_cold(world.rescale, world.journal)
    other = World(running=True)
    with pytest.raises(UnsafeState, match="found a running instance"):
        _assert_green_is_cold(other.rescale, other.journal)


def test_nothing_is_promoted_if_what_is_held_has_joined_or_committed_or_has_another_pass() -> None:
    world = World()
    world.start()
    held.assert_held_back(world.rescale, world.journal)
    world.members = True
    with pytest.raises(UnsafeState, match="found 1 members of its group"):
        held.assert_held_back(world.rescale, world.journal)
    world.members = False
    world.offsets[GREEN] = {"orders": {0: 5}}
    with pytest.raises(UnsafeState, match="committed offsets of orders"):
        held.assert_held_back(world.rescale, world.journal)
    del world.offsets[GREEN], world.offsets[GATE]
    with pytest.raises(UnsafeState, match="another pass"):
        held.assert_held_back(world.rescale, world.journal)


def test_a_person_is_asked_and_can_not_be_asked_whether_it_runs() -> None:
    world = World(lifecycle_spec={"type": "manual", "start_held": "set HOLD=on"})
    assert held.is_waiting(world.rescale, world.start())
    world.running = False
    assert held.is_waiting(world.rescale, world.journal)
