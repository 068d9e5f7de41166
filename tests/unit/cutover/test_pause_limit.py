"""How long a pause may still last: whatever happens to the wall clock, no longer than declared."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage
from kafka_rescale.operations.cutover.pause_limit import PauseLimit

from tests.support.plans import in_place_application, in_place_plan

BEGAN_MS = 1_700_000_000_000
LIMIT = 300


class Clocks:
    """The wall clock, and the clock that nobody sets."""

    def __init__(self) -> None:
        self.wall, self.steady = BEGAN_MS / 1000, 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("kafka_rescale.kafka.client.waiting.time", clocks)
    return clocks


JOURNAL = Journal(plan=in_place_plan(), phase=Phase.QUIESCING, pause_started_ms=BEGAN_MS)


def limit() -> PauseLimit:
    return PauseLimit(in_place_application().model_copy(update={"max_pause_seconds": LIMIT}))


def test_a_clock_that_is_set_back_does_not_lift_it(clocks: Clocks) -> None:
    pause = limit()
    assert pause.seconds_left(JOURNAL) == LIMIT
    clocks.pass_by(100)
    clocks.wall -= 3600
    assert pause.seconds_left(JOURNAL) == LIMIT - 100
    clocks.pass_by(200)
    with pytest.raises(Outage, match=r"pause of .*: found more than 300 s; expected promotion within max_pause"):
        pause.seconds_left(JOURNAL)


def test_a_process_that_goes_on_with_a_pause_counts_what_was_before_it(clocks: Clocks) -> None:
    clocks.pass_by(100)
    assert limit().seconds_left(JOURNAL) == LIMIT - 100


def test_one_whose_clock_is_behind_gives_it_the_whole_limit_and_no_more(clocks: Clocks) -> None:
    clocks.wall -= 3600
    assert limit().seconds_left(JOURNAL) == LIMIT
