"""The control topic is deleted, or made anew, while an expansion is at work: a person hears who is down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.expansion.lost_records import lost_records
from kafka_rescale.operations.cutover import copies, cutover
from kafka_rescale.operations.expansion.ensure_running import ensure_running
from kafka_rescale.operations.expansion.rollback import roll_back

from tests.support.expansion.growing_steps import APPLICATION, CONNECTION, cut_over, use, without_brokers
from tests.support.expansion.growing_world import NAME, OWNER, GrowingWorld
from tests.support.plans import plan_for

BY_HAND = f"START {NAME} BY HAND NOW, as it was, for 4 partitions"


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)
    monkeypatch.setattr(copies, "READY_SECONDS", 0.1)
    monkeypatch.setattr(cutover.producers, "hold", lambda *_: None)
    monkeypatch.setattr(cutover.producers, "release", lambda _: None)
    # The job beside the cutover gives no sign any more once its records are gone.
    read = GrowingWorld._read
    monkeypatch.setattr(GrowingWorld, "_read", lambda w: w.state if w.state.journal is None else read(w))


def lost(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[], GrowingWorld], step: Callable[[], object]
) -> Iterator[tuple[GrowingWorld, Phase, RescaleError | None]]:
    """Call a step again and again. Its records are lost before its first call, its second, and so on.

    What is promoted by then loses nothing.

    :returns: each world, the phase in which the records were lost, and the error of the step.
    """
    for at in range(1, 200):
        world, phases = made(), list[Phase]()

        def lose(world: GrowingWorld = world, phases: list[Phase] = phases) -> None:
            if not world.journal.is_promoted:
                phases.append(world.journal.phase)
                world.state = ControlState()

        world.calls, world.freezes_at, world.meanwhile = 0, at, lose
        use(world, monkeypatch)
        found = None
        try:
            step()
        except RescaleError as error:
            found = error
        if not phases:
            return
        yield world, phases[0], found


def test_a_cutover_names_who_is_down_and_says_to_start_it_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    down = set()
    for world, phase, error in lost(monkeypatch, GrowingWorld, cut_over):
        told = str(error)
        if world.running:
            assert BY_HAND not in told
            continue
        down.add(phase)
        assert f"found no journal; expected attempt 1, which this process has seen in phase {phase}" in told
        assert "THE CONTROL TOPIC HAS LOST ITS RECORDS" in told
        assert BY_HAND in told
    assert down == {Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP}


def test_so_does_a_rollback_unless_it_has_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> GrowingWorld:
        world = GrowingWorld()
        world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
        world.running = world.members = False
        return world

    seen = set()
    for world, phase, error in lost(
        monkeypatch, stopped, lambda: ensure_running(APPLICATION, CONNECTION, owner=OWNER, reason="a mark")
    ):
        if error is None:
            # It has begun with a topic that was lost, or was done when it was.
            continue
        seen.add((phase, world.running))
        told = str(error)
        assert (BY_HAND in told) is not world.running
        assert (f"{NAME} was not stopped" in told) is world.running
    assert {(Phase.QUIESCING, False), (Phase.ROLLING_BACK, False), (Phase.ROLLING_BACK, True)} <= seen


def test_a_later_process_does_not_deny_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can't know of any attempt, and perhaps there was none."""
    use(GrowingWorld(has_job=False), monkeypatch).state = ControlState()
    by_hand = f"see that {NAME} or its next generation runs"
    assert by_hand in roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="x").told
    assert by_hand in ensure_running(APPLICATION, CONNECTION, owner=OWNER, reason="x").told
    with pytest.raises(RescaleError, match=by_hand):
        cut_over()


def test_where_the_next_generation_has_an_id_of_its_own_it_must_not_run() -> None:
    journal: Any = GrowingWorld().journal.model_copy(
        update={"plan": plan_for("shop"), "phase": Phase.QUIESCED, "pause_started_ms": 1, "stop_asked": True}
    )
    assert "See that shop-g2 does not run, and START shop BY HAND NOW" in str(lost_records(journal))
    held = journal.model_copy(update={"phase": Phase.QUIESCING, "stop_asked": False})
    assert "shop was not stopped by this expansion: see that it runs" in str(lost_records(held))
    assert "Producers may be held: release them." in str(lost_records(held))
    promoted = str(lost_records(journal.model_copy(update={"phase": Phase.PROMOTED})))
    assert "shop-g2 owns the inputs since its promotion: NOBODY PROCESSES ITS INPUTS unless" in promoted
    assert "BY HAND NOW" not in promoted
    started = journal.model_copy(update={"phase": Phase.STARTED})
    assert "shop-g2 was not stopped by this expansion" in str(lost_records(started))
