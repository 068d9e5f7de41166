"""Steps that begin or end a pause go on trying while the brokers don't answer. Everything else fails at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import ClusterOutage, NotLetIn, Outage, TimedOut
from kafka_rescale.kafka.client.waiting import within
from kafka_rescale.lifecycle.manual import Person
from kafka_rescale.operations.cutover import cutover, growing, jobs_beside, persistence
from kafka_rescale.operations.cutover.persistence import insist, state_of_pause
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import RollBack, roll_back

from tests.support.expansion.growing_steps import (
    APPLICATION,
    CONNECTION,
    assert_grown,
    cut_over,
    use,
    without_brokers,
)
from tests.support.expansion.growing_world import NAME, OWNER, GrowingWorld
from tests.support.plans import in_place_plan, plan_for

AWAY = ClusterOutage("a test", found="no answer", expected="one", remedy="Wait.")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)
    monkeypatch.setattr(persistence, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(persistence, "LONGEST_PAUSE_SECONDS", 0.0)


class Brokers:
    """Brokers that do not answer a few calls, beginning with one call. They may have done what was asked, or not.

    :param away_at: number of the first call without an answer.
    :param calls: how many calls get no answer.
    :param does: whether the first of these calls is carried out.
    """

    def __init__(self, world: GrowingWorld, away_at: int, calls: int, *, does: bool) -> None:
        self._call, self._away, self._does = world._call, range(away_at, away_at + calls), does
        self.count = 0

    def call(self, body: Callable[..., Any]) -> Callable[..., Any]:
        whole = self._call(body)

        def asked(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count not in self._away:
                return whole(*arguments, **named)
            if self._does and self.count == self._away.start:
                whole(*arguments, **named)
            raise AWAY

        return asked


def calls_of_a_cutover(monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patch:
        world = GrowingWorld()
        brokers = Brokers(world, 0, 0, does=False)
        patch.setattr(world, "_call", brokers.call)
        use(world, patch)
        cut_over()
        return brokers.count


@pytest.mark.parametrize("does", [False, True], ids=["not carried out", "carried out"])
def test_wherever_the_brokers_are_away_for_a_while_the_cutover_ends_in_the_promotion(
    monkeypatch: pytest.MonkeyPatch, does: bool
) -> None:
    monkeypatch.setattr(jobs_beside, "CONTROL_TOPIC", "totals")
    for away_at in range(1, calls_of_a_cutover(monkeypatch) + 1):
        with monkeypatch.context() as patch:
            world = GrowingWorld()
            patch.setattr(world, "_call", Brokers(world, away_at, 4, does=does).call)
            use(world, patch)
            cut_over()
            assert_grown(world)


def test_past_the_limit_of_the_pause_it_is_rolled_back_as_soon_as_they_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = use(GrowingWorld(), monkeypatch)

    def away(*_: Any) -> None:
        journal = world.journal.model_copy(update={"pause_started_ms": 1})
        world.state = world.state.model_copy(update={"journal": journal})
        monkeypatch.setattr(world, "_call", Brokers(world, 1, 20, does=False).call)
        raise AWAY

    monkeypatch.setattr(growing, "rehearse_unit", away)
    opened: list[Rescale] = []

    def reopened(*_: Any) -> Rescale:
        opened.append(world.rescale)
        return opened[-1]

    monkeypatch.setattr(Rescale, "open", reopened)
    with pytest.raises((ClusterOutage, Outage)):
        cut_over()
    assert len(opened) == 2
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK


def test_a_person_who_does_not_answer_is_waited_for_no_longer_than_the_pause_may_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Producers are held by then. The lifecycle itself would wait for half an hour."""
    world = GrowingWorld()
    person = Person(ManualLifecycle(type="manual"), lambda _: world.running)
    application = APPLICATION.model_copy(update={"max_pause_seconds": 1})
    rescale = replace(world.rescale, lifecycle=person, application=application)
    monkeypatch.setattr(Rescale, "open", lambda *_: rescale)
    rolled_back: list[str] = []

    def rolls_back(*_: Any, reason: str, **__: Any) -> RollBack:
        rolled_back.append(reason)
        return RollBack(True, "rolled back")

    monkeypatch.setattr(cutover, "roll_back", rolls_back)
    began = time.monotonic()
    with pytest.raises(TimedOut, match=f"waiting for a person .*: STOP every instance of {NAME}") as late:
        cut_over()
    assert time.monotonic() - began < 60
    assert late.value.seconds <= 1
    assert rolled_back == [str(late.value)]


def test_a_promotion_of_which_only_the_answer_was_lost_is_brought_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit of the pause has passed. The step that would start blue again finds that green owns the inputs."""
    world = GrowingWorld()
    update, lost = world._update, [Outage("a test", found="more than 300 s", expected="less", remedy="None.")]

    def promoted(change: Any) -> Any:
        state = update(change)
        if world.journal.phase is Phase.PROMOTED and lost:
            raise lost.pop()
        return state

    monkeypatch.setattr(world, "_update", promoted)
    use(world, monkeypatch)
    cut_over()
    assert_grown(world)
    assert lost == []


def test_a_rollback_has_no_limit_of_its_own_and_starts_blue_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GrowingWorld()
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    world.running = world.members = False
    monkeypatch.setattr(world, "_call", Brokers(world, 1, 50, does=False).call)
    use(world, monkeypatch)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    assert world.running


def test_blue_is_started_although_the_producers_can_not_be_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    world, runs = use(GrowingWorld(), monkeypatch), []
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    world.running = world.members = False

    def release(_: Any) -> None:
        runs.append(world.running)
        if len(runs) < 3:
            raise AWAY

    monkeypatch.setattr(producers, "release", release)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    assert runs == [False, True, True]


def test_a_start_command_that_fails_is_called_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "COMMAND_SECONDS", 60.0)
    world, tries = use(GrowingWorld(), monkeypatch), []
    start = world._start

    def fails_twice(instance: Any) -> None:
        tries.append(instance)
        if len(tries) < 3:
            raise Outage("command `start`", found="exit code 1", expected="0", remedy="Look at it.")
        start(instance)

    monkeypatch.setattr(world, "_start", fails_twice)
    cut_over()
    assert_grown(world)


def test_what_is_no_outage_of_the_cluster_is_raised_at_once() -> None:
    tries: list[int] = []

    def fails() -> None:
        tries.append(1)
        raise Outage("command", found="exit code 1", expected="0", remedy="None.")

    with pytest.raises(Outage, match="command"):
        insist(fails, lambda: "")
    assert len(tries) == 1


REFUSED = NotLetIn("a client", found="the issuer did not answer", expected="to be let in", remedy="Wait.")


def test_credentials_that_are_refused_for_a_moment_are_waited_out() -> None:
    answers: list[Exception | None] = [REFUSED, AWAY, REFUSED, None]

    def asks() -> int:
        if (error := answers.pop(0)) is not None:
            raise error
        return 7

    assert insist(asks, lambda: "") == 7


def test_credentials_that_stay_refused_end_the_step_so_that_the_next_try_reads_them_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(persistence, "REFUSAL_SECONDS", 0.05)
    answers: list[Exception] = [AWAY] * 3

    def asks() -> None:
        time.sleep(0.03)  # three outages take longer than a refusal may
        raise answers.pop() if answers else REFUSED

    with pytest.raises(NotLetIn):
        insist(asks, lambda: "")
    assert not answers


def test_a_refusal_after_long_work_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "REFUSAL_SECONDS", 0.05)
    monkeypatch.setattr(persistence, "ONE_REFUSAL_SECONDS", 0.05)
    answers: list[Exception | None] = [REFUSED, REFUSED, REFUSED, None]

    def works_and_asks() -> int:
        time.sleep(0.1)
        if (error := answers.pop(0)) is not None:
            raise error
        return 7

    assert insist(works_and_asks, lambda: "") == 7


def test_when_the_time_is_over_the_last_failure_is_raised() -> None:
    tries: list[int] = []

    def fails() -> None:
        tries.append(1)
        raise AWAY

    left = within(0.05)
    with pytest.raises(ClusterOutage, match="a test"):
        insist(fails, lambda: "", seconds_left=left)
    assert len(tries) > 1


def test_it_is_told_while_a_call_hangs_and_what_the_last_answer_was(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(persistence, "TELL_SECONDS", 0.02)
    tries: list[int] = []

    def told(number: int) -> bool:
        return sum("waiting for it" in line for line in caplog.messages) >= number

    def hangs() -> None:
        tries.append(1)
        deadline = time.monotonic() + 30
        while not told(2 * len(tries)) and time.monotonic() < deadline:
            time.sleep(0.01)
        if len(tries) == 1:
            raise AWAY

    with caplog.at_level(logging.WARNING):
        insist(hangs, lambda: "waiting for it")
    assert caplog.messages[0] == "waiting for it"
    assert caplog.messages[-1] == f"waiting for it; the last answer: {AWAY}"


@pytest.mark.parametrize(
    ("journal", "expected"),
    [
        (None, "it is not known whether anything processes the inputs of shop: waiting for it"),
        (Journal(plan=plan_for("shop")), "shop processes the inputs of shop: waiting for it"),
        (
            Journal(plan=plan_for("shop"), phase=Phase.QUIESCING, pause_started_ms=1),
            "shop processes the inputs of shop: waiting for it",
        ),
        (
            Journal(plan=plan_for("shop"), phase=Phase.QUIESCED, pause_started_ms=2**50),
            "NOBODY PROCESSES the inputs of shop for 0 s by now, neither shop nor shop-g2 runs: waiting for it",
        ),
        (
            Journal(plan=plan_for("shop"), phase=Phase.ROLLING_BACK, stop_asked=True, pause_started_ms=2**50),
            "NOBODY PROCESSES the inputs of shop for 0 s by now, neither shop nor shop-g2 runs: waiting for it",
        ),
        (
            Journal(plan=in_place_plan(), phase=Phase.PROMOTED, pause_started_ms=2**50),
            f"NOBODY PROCESSES the inputs of shop for 0 s by now, {NAME} is stopped: waiting for it",
        ),
        (
            Journal(plan=plan_for("shop"), phase=Phase.PROMOTED, pause_started_ms=1, timings={"total": 1.0}),
            "shop-g2 processes the inputs of shop: waiting for it",
        ),
    ],
)
def test_the_sentence_says_who_processes(journal: Journal | None, expected: str) -> None:
    assert state_of_pause("shop", journal, "it") == expected


def test_nobody_is_said_to_be_missing_once_the_new_generation_was_started() -> None:
    journal = Journal(plan=plan_for("shop"), phase=Phase.PROMOTED, pause_started_ms=2**50)
    assert state_of_pause("shop", journal, "its first output", has_started=True) == (
        "shop-g2 was started, and nothing is known of its work on the inputs of shop yet, 0 s after the pause "
        "began. Start nothing else: waiting for its first output"
    )
