"""A cutover that holds the compaction of changelogs late, beside whoever has ended its attempt meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import ClusterOutage, RescaleError
from kafka_rescale.operations.cutover import copies, cutover
from kafka_rescale.operations.expansion import begin as begins
from kafka_rescale.operations.expansion.compaction import (
    HELD,
    KEEP_ALL,
    hold_compaction,
    release_compaction,
    still_held,
)
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back

from tests.support.expansion.growing_steps import APPLICATION, CONNECTION, cut_over, use, without_brokers
from tests.support.expansion.growing_world import OWNER, GrowingWorld
from tests.support.plans import plan_for

OWN = {"min.compaction.lag.ms": "1000"}


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)
    monkeypatch.setattr(copies, "READY_SECONDS", 0.1)


def _made() -> GrowingWorld:
    """A world whose user has set a lag for one of the application's changelogs."""
    world = GrowingWorld()
    world.configs[world.plan.changelogs[0].source] = dict(OWN)
    return world


def _overrides(world: GrowingWorld) -> list[dict[str, str]]:
    found = [world.configs.get(m.source, {}) for m in world.plan.changelogs]
    return [{name: value for name, value in of.items() if value is not None} for of in found]


def _rolled_back(_: GrowingWorld) -> None:
    roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a person")


def _begun_again(world: GrowingWorld) -> None:
    if not world.journal.is_promoted:
        _rolled_back(world)
        world.begin_again()


def _cut_over_again(world: GrowingWorld) -> None:
    _begun_again(world)
    cut_over()


def _finished(world: GrowingWorld) -> None:
    cut_over()
    world.rescale.advance(Phase.VERIFIED)
    release_compaction(world.rescale, world.journal)
    world.rescale.advance(Phase.COMPLETE)


@pytest.mark.parametrize("meanwhile", [_rolled_back, _begun_again, _cut_over_again, _finished])
def test_wherever_it_freezes_the_changelogs_get_back_the_settings_of_their_user(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[GrowingWorld], None]
) -> None:
    # A late process may ask the brokers this while topics grow. It changes nothing.
    for question in ("await_positions", "assert_may_grow"):
        monkeypatch.setattr(cutover, question, lambda *_: None)
    for at in range(1, 200):
        world = _made()
        before = _overrides(world)
        phases: list[Phase] = []

        def ended(world: GrowingWorld = world, phases: list[Phase] = phases) -> None:
            phases.append(world.journal.phase)
            meanwhile(world)

        world.freezes_at, world.meanwhile = at, ended
        use(world, monkeypatch)
        with suppress(RescaleError):
            cut_over()
        if world.journal.phase is Phase.WARMING:
            cut_over()
        if world.journal.phase is Phase.STARTED:
            assert _overrides(world) == [dict.fromkeys(HELD, KEEP_ALL)] * len(before)
            release_compaction(world.rescale, world.journal)
        assert _overrides(world) == before
        if phases != [Phase.WARMING]:
            assert phases == [Phase.QUIESCING]
            return
    raise AssertionError("the pause has never begun")


def test_what_a_killed_process_has_held_behind_a_rollback_is_released_when_the_next_attempt_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = use(_made(), monkeypatch)
    hold_compaction(world.rescale, world.journal)
    for phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        world.rescale.advance(phase)
    # Its user has set this since.
    others = {"min.compaction.lag.ms": "5000"}
    world.configs[world.plan.changelogs[1].source] = dict(others)

    def opened(*_: Any) -> Any:
        rescale: Any = world.rescale
        rescale.control.ensure = lambda: None
        return rescale

    monkeypatch.setattr(Rescale, "open", opened)
    monkeypatch.setattr(begins, "assert_ended", lambda *_: None)
    monkeypatch.setattr(begins.lease, "acquire", lambda *_, **__: None)
    monkeypatch.setattr(begins.journal_store, "begin", lambda *_, **__: world.journal)
    begins.begin(APPLICATION, CONNECTION, world.plan, owner=OWNER, now_ms=1, owner_is_finished=lambda _: True)
    assert _overrides(world) == [OWN, others]


def test_copies_that_a_person_has_deleted_hold_up_no_attempt() -> None:
    """The documents tell people to delete them, when they shall be made anew."""
    plan = plan_for("orders-app")
    noted = {"orders-app-g2-per-customer-changelog": "1000"}
    journal = Journal(plan=plan, phase=Phase.ROLLED_BACK, compaction_lags=noted, max_compaction_lags=noted)

    def refuses(_: object) -> Any:
        raise ClusterOutage("topic", found="brokers that do not know it", expected="it", remedy="Wait.")

    admin = SimpleNamespace(describe_topics=lambda _: {}, existing_topics=refuses)
    rescale: Any = SimpleNamespace(admin=admin)
    left = still_held(rescale, journal)
    assert (left.compaction_lags, left.max_compaction_lags) == ({}, {})
