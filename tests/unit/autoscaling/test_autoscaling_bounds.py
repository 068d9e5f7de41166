"""The bounds within which autoscaling may act without a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.application.autoscaling import Bounds
from kafka_rescale.core.application.windows import DAYS, Window
from pydantic import ValidationError

MONDAY = datetime(2025, 6, 2, tzinfo=UTC)
MINUTES = st.integers(0, 24 * 60 - 1)


def at(day: str, time: str) -> datetime:
    """A moment in one week."""
    hours, minutes = map(int, time.split(":"))
    return MONDAY + timedelta(days=DAYS.index(day), hours=hours, minutes=minutes)


@pytest.mark.parametrize(
    ("window", "day", "time", "inside"),
    [
        ("09:00-17:00", "sun", "09:00", True),
        ("09:00-17:00", "sun", "17:00", False),
        ("mon-fri 09:00-17:00", "sat", "12:00", False),
        ("sat 00:00-24:00", "sat", "23:59", True),
        ("sat 00:00-24:00", "sun", "00:00", False),
        ("fri 22:00-05:00", "sat", "04:59", True),
        ("fri 22:00-05:00", "sat", "22:00", False),
        ("fri 22:00-05:00", "fri", "04:59", False),
        ("sat-mon 10:00-11:00", "mon", "10:30", True),
        ("sat-mon 10:00-11:00", "tue", "10:30", False),
        ("sun 22:00-05:00", "mon", "01:00", True),
    ],
)
def test_a_window_is_of_the_day_on_which_it_begins(window: str, day: str, time: str, inside: bool) -> None:
    assert Window.parsed(window).contains(at(day, time)) is inside


@pytest.mark.parametrize("wrong", ["", "9:00-17:00", "mon 09:00", "mon-xyz 09:00-10:00", "25:00-26:00", "1320"])
def test_what_is_no_window_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(ValidationError, match="mon-fri 22:00-05:00"):
        Bounds(windows=(wrong,))


def test_a_window_without_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="A whole day is 00:00-24:00"):
        Bounds(windows=("05:00-05:00",))


@settings(deadline=None)
@given(start=MINUTES, end=MINUTES, offset=st.integers(0, 7 * 24 * 60 - 1))
def test_two_windows_that_complete_a_day_cover_every_moment_once(start: int, end: int, offset: int) -> None:
    if start == end:
        return
    text = [f"{a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02}" for a, b in ((start, end), (end, start))]
    moment = MONDAY + timedelta(minutes=offset)
    assert sum(Window.parsed(t).contains(moment) for t in text) == 1


def test_windows_are_of_their_time_zone() -> None:
    bounds = Bounds(windows=("22:00-23:00",), time_zone="Europe/Berlin")
    half_past_ten = datetime(2025, 6, 2, 20, 30, tzinfo=UTC)
    assert list(bounds.obstacles(0, int(half_past_ten.timestamp() * 1000))) == []
    (late,) = bounds.obstacles(0, int(half_past_ten.timestamp() * 1000) + 3_600_000)
    assert late == "Mon 23:30 Europe/Berlin is outside the windows 22:00-23:00"


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="Europe/Berlin"):
        Bounds(time_zone="Berlin")


@settings(deadline=None)
@given(lag=st.integers(0, 1000), maximum=st.integers(0, 1000))
def test_a_lag_beyond_the_bound_holds_and_no_other(lag: int, maximum: int) -> None:
    assert bool(list(Bounds(maximum_lag=maximum).obstacles(lag, 0))) is (lag > maximum)


def test_without_bounds_nothing_is_in_the_way() -> None:
    assert list(Bounds().obstacles(10**9, 0)) == []
    assert Bounds().allows(100_000)
    assert not Bounds().wants_approval(100_000)


@pytest.mark.parametrize(("target", "allowed", "asked"), [(8, True, False), (9, True, True), (17, False, True)])
def test_counts_beyond_a_bound_need_a_person(target: int, allowed: bool, asked: bool) -> None:
    bounds = Bounds(maximum_partitions=16, approval_above=8)
    assert (bounds.allows(target), bounds.wants_approval(target)) == (allowed, asked)
