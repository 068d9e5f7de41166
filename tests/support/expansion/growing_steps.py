"""A cutover in place over ``GrowingWorld``, without brokers."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.operations.cutover import growing, in_place, persistence, quiesce, start_green
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.stages import expand_stage

from tests.support.expansion.growing_world import AFTER, BEFORE, NAME, OUTPUT, OWNER, GrowingWorld
from tests.support.plans import in_place_application

APPLICATION, NOBODY = in_place_application(), None
CONNECTION: Any = NOBODY


def without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the functions that talk to brokers by themselves. A command that fails is not tried again."""
    monkeypatch.setattr(persistence, "COMMAND_SECONDS", 0.0)
    monkeypatch.setattr(in_place, "fence", lambda *_: None)
    monkeypatch.setattr(start_green, "watch_first_output", lambda *_: {"restore": 0.0})
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: None)
    for module in (in_place, quiesce):
        monkeypatch.setattr(module, "wait_until_complete", lambda admin, topics, **_: admin.end_offsets(topics))


def use(world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    """Let every step work on this world."""
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    return world


def cut_over() -> None:
    """Do what the cutover task does."""
    run_cutover(APPLICATION, CONNECTION, owner=OWNER)


def steps(world: GrowingWorld) -> None:
    """Do what the tasks do, in their order. Tasks that are already done run again."""
    for stage in world.plan.stages:
        expand_stage(APPLICATION, CONNECTION, owner=OWNER, stage=stage.index)
    cut_over()


def assert_grown(world: GrowingWorld) -> None:
    """Assert that it started once, after everything had been moved, and went on from where it was stopped."""
    assert world.journal.phase is Phase.STARTED
    assert world.running
    assert world.starts == 1
    plan, journal = world.plan, world.journal
    assert journal.green_ends == {m.target: world.ends_at_start[m.target] for m in plan.moves}
    assert {t: len(of) for t, of in world.ends.items() if t != OUTPUT} == dict.fromkeys(
        ["orders", *(m.source for m in plan.moves)], AFTER
    )
    captured = {p: 10 + p if p < BEFORE else 0 for p in range(AFTER)}
    topics = ["orders", *(m.target for m in plan.repartitions)]
    assert journal.green_start == dict.fromkeys(topics, captured)
    # Each offset is one above its start, because the application was at work.
    assert world.offsets[NAME] == {t: {p: o + 1 for p, o in captured.items()} for t in topics}
    assert world.state.generations is not None
    assert (world.state.generations.running, world.state.generations.generation) == (NAME, 2)
