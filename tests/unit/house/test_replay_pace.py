"""How many flights of a replay are due."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from testbed.replay import due_of


def test_a_steady_replay_sends_at_its_rate() -> None:
    assert [due_of(1_000, 12, seconds, lasting=False) for seconds in (0, 1, 10)] == [0, 12, 120]


def test_a_lasting_one_begins_at_its_rate_and_slows_down() -> None:
    assert due_of(6_000, 12, 10, lasting=True) in range(115, 121)
    assert due_of(6_000, 12, 500, lasting=True) in range(3_700, 3_900)


@given(flights=st.integers(1, 400_000), rate=st.floats(0.1, 10_000), seconds=st.floats(0, 1e6))
def test_a_lasting_one_always_has_flights_left(flights: int, rate: float, seconds: float) -> None:
    assert 0 <= due_of(flights, rate, seconds, lasting=True) < flights


@given(st.floats(0, 1e6))
def test_with_nothing_left_nothing_is_due(seconds: float) -> None:
    assert due_of(0, 12, seconds, lasting=True) == 0
