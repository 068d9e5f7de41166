"""``on_partition_expansion``: wherever the worker dies, the function has its effect once, or a person is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.core.expansion.callback import ExpansionCallback, expansion_id
from kafka_rescale.operations.expansion import finish as operation
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.expansion import expansion_callbacks
from tests.support.expansion.callback_world import MODULE, PLAN, World
from tests.support.expansion.gate_world import Killed
from tests.support.situations import found, situation
from tests.support.small_application import application

ID = expansion_id(PLAN)
AMBIGUOUS = (
    f"expansion {ID}: found a call of {MODULE}:note that has begun, and no record of its end; expected one call "
    "per expansion. Give the function a parameter `expansion_id`, the same for every call of one expansion, so "
    "that it can recognise a repeated one; or see whether it has had its effect, bring that about by hand if not, "
    "and take `on_partition_expansion` out of the file until this run is complete. Then clear the callback task."
)


@pytest.fixture
def finish(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[World], None]:
    """Return a function that runs the operation in a world."""
    monkeypatch.setenv(expansion_callbacks.EFFECTS, str(tmp_path / "effects"))
    functions = {name: getattr(expansion_callbacks, name) for name in ("note", "note_once")}

    def run(world: World) -> None:
        monkeypatch.setattr(Rescale, "open", lambda *_: opened(world))
        monkeypatch.setattr(operation.lease, "release", lambda *_: None)
        for name, function in functions.items():
            # The operation looks at the function's signature.
            wrapped = world.call(function)
            wrapped.__wrapped__ = function  # type: ignore[attr-defined]
            monkeypatch.setattr(expansion_callbacks, name, wrapped)
        connection: Any = None
        operation.finish(world.rescale.application, connection, owner="test")

    return run


def opened(world: World) -> Any:
    """A ``Rescale`` whose control topic has the journal that the world's steps have left."""
    rescale = world.rescale
    rescale.control = SimpleNamespace(read=lambda: ControlState(journal=world.journal))
    rescale.owner = "test"
    return rescale


def dying_worlds(callback: str, finish: Callable[[World], None]) -> list[World]:
    """A world for each moment at which the worker can die."""
    whole = World(callback)
    finish(whole)
    assert whole.moments == 6, "three calls: the intention, the function, the completion"
    return [World(callback, dies_at=moment) for moment in range(1, whole.moments + 1)]


def forget() -> None:
    """Forget all effects."""
    Path(os.environ[expansion_callbacks.EFFECTS]).unlink(missing_ok=True)


def test_it_is_called_once_with_both_counts(finish: Callable[[World], None]) -> None:
    world = World()
    finish(world)
    finish(world)
    assert expansion_callbacks.effects() == ["4->8"]
    assert world.journal.phase is Phase.COMPLETE


def outcome(world: World, finish: Callable[[World], None]) -> str:
    """Run the operation again after the worker's death, and return how it ended."""
    try:
        finish(world)
    except UnsafeState as error:
        return str(error)
    return world.journal.phase


def test_killed_anywhere_a_plain_function_is_never_called_twice(finish: Callable[[World], None]) -> None:
    outcomes = []
    for world in dying_worlds("note", finish):
        forget()
        with pytest.raises(Killed):
            finish(world)
        outcomes.append((outcome(world, finish), len(expansion_callbacks.effects())))
    assert outcomes == [
        (Phase.COMPLETE, 1),
        (AMBIGUOUS, 0),
        (AMBIGUOUS, 0),
        (AMBIGUOUS, 1),
        (AMBIGUOUS, 1),
        (Phase.COMPLETE, 1),
    ]


def test_killed_anywhere_a_function_that_knows_the_expansion_has_one_effect(
    finish: Callable[[World], None],
) -> None:
    for world in dying_worlds("note_once", finish):
        forget()
        with pytest.raises(Killed):
            finish(world)
        finish(world)
        assert world.journal.phase is Phase.COMPLETE
        assert expansion_callbacks.effects() == [f"4->8 {ID}"]


def test_a_person_ends_it_by_taking_the_function_out_of_the_file(finish: Callable[[World], None]) -> None:
    begun = Journal(plan=PLAN, phase=Phase.VERIFIED, callback_begun_ms=5)
    world = World(callback=None, journal=begun)
    finish(world)
    assert world.journal.phase is Phase.COMPLETE
    assert expansion_callbacks.effects() == []


def test_of_two_attempts_at_once_one_calls() -> None:
    callback = ExpansionCallback.of(application("shop", on_partition_expansion=f"{MODULE}:note"))
    assert callback is not None
    first = callback.begun(Journal(plan=PLAN, phase=Phase.VERIFIED), now_ms=5)
    assert first.callback_begun_ms == 5
    with pytest.raises(UnsafeState, match="that has begun"):
        callback.begun(first, now_ms=6)


def test_an_attempt_that_comes_after_the_end_is_told_so() -> None:
    callback = ExpansionCallback.of(application("shop", on_partition_expansion=f"{MODULE}:note"))
    assert callback is not None
    with pytest.raises(UnsafeState, match="found phase complete"):
        callback.begun(Journal(plan=PLAN, phase=Phase.COMPLETE, callback_begun_ms=5), now_ms=6)


def test_a_function_that_fails_is_not_called_again_unless_it_knows_the_expansion(
    finish: Callable[[World], None],
) -> None:
    plain = World("fails")
    with pytest.raises(UnsafeState, match="found TimeoutError: no answer from the scheduler; expected"):
        finish(plain)
    with pytest.raises(UnsafeState, match="that has begun"):
        finish(plain)
    knowing = World("fails_with_token")
    for _ in range(2):
        with pytest.raises(TimeoutError):
            finish(knowing)


def test_a_function_that_ends_its_process_has_not_ended_the_expansion(finish: Callable[[World], None]) -> None:
    """Airflow takes an exit with code 0 for a success of the task."""
    plain, knowing = World("exits"), World("exits_with_token")
    with pytest.raises(UnsafeState, match="found SystemExit: 0; expected a call"):
        finish(plain)
    for _ in range(2):
        with pytest.raises(Outage, match="found SystemExit: 0; expected a function that returns"):
            finish(knowing)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (f"{MODULE}:missing", "has no attribute 'missing'"),
        ("no.such.module:f", "No module named 'no'"),
        (f"{MODULE}:NOT_A_FUNCTION", "3 is not a callable object"),
        (f"{MODULE}:of_one_count", "too many positional arguments"),
    ],
)
def test_a_function_that_can_not_be_called_is_found_before_anything_begins(name: str, says: str) -> None:
    given = situation()
    declared = given.application.model_copy(update={"on_partition_expansion": name})
    [finding] = found(replace(given, application=declared))
    assert finding.startswith(f"on_partition_expansion '{name}': found ")
    assert says in finding
    assert "expected an importable function of (old, new), or of (old, new, expansion_id)" in finding
    sound = declared.model_copy(update={"on_partition_expansion": f"{MODULE}:note_once"})
    assert found(replace(given, application=sound)) == []


def test_the_token_is_that_of_one_expansion_alone() -> None:
    again = PLAN.model_copy(update={"generation": 3, "green": "shop-g3"})
    assert expansion_id(PLAN) == expansion_id(PLAN.model_copy())
    assert expansion_id(again) != ID


def test_a_callback_that_is_not_declared_is_none() -> None:
    assert ExpansionCallback.of(application("shop")) is None
    with pytest.raises(InvalidInput):
        ExpansionCallback.of(application("shop", on_partition_expansion=f"{MODULE}:missing"))
