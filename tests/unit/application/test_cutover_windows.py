"""When a cutover may begin: the windows of the file, also on days when the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.application.windows import DAYS, CutoverWindows, is_within
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_application

from tests.support.application_files import write_application

BERLIN = "Europe/Berlin"


def windows(*texts: str, zone: str = "UTC") -> CutoverWindows:
    return CutoverWindows(windows=texts, time_zone=zone)


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


@pytest.mark.parametrize(
    ("window", "now", "opens"),
    [
        ("02:00-05:00", "2026-11-25 12:00", "2026-11-26 02:00"),
        ("02:00-05:00", "2026-11-25 02:00", "2026-11-25 02:00"),
        ("02:00-05:00", "2026-11-25 04:59:59.500", "2026-11-25 04:59:59.500"),
        ("02:00-05:00", "2026-11-25 05:00", "2026-11-26 02:00"),
        # A window across midnight belongs to the day on which it begins.
        ("sat 22:00-03:00", "2026-11-29 02:59", "2026-11-29 02:59"),
        ("sat 22:00-03:00", "2026-11-29 03:00", "2026-12-05 22:00"),
        ("sun 22:00-03:00", "2026-11-29 02:59", "2026-11-29 22:00"),
        ("sat-sun 00:00-24:00", "2026-11-27 23:59:30", "2026-11-28 00:00"),
    ],
)
def test_it_opens_at_the_next_window_or_at_once_within_one(window: str, now: str, opens: str) -> None:
    assert windows(window).opens_ms(ms(now)) == ms(opens)


def test_of_several_windows_the_first_that_comes_opens() -> None:
    both = windows("sun 02:00-03:00", "wed 20:00-21:00")
    assert both.opens_ms(ms("2026-11-25 12:00")) == ms("2026-11-25 20:00")
    assert both.opens_ms(ms("2026-11-25 21:00")) == ms("2026-11-29 02:00")


def test_the_times_are_those_of_the_zone_whatever_its_offset_is_that_day() -> None:
    night = windows("02:00-05:00", zone=BERLIN)
    assert night.opens_ms(ms("2026-07-01 12:00")) == ms("2026-07-02 00:00")
    assert night.opens_ms(ms("2026-11-25 12:00")) == ms("2026-11-26 01:00")


class TestTheNightThatMissesAnHour:
    """29 March 2026 in Berlin: 02:00 is followed by 03:00."""

    def test_a_window_that_begins_in_the_missing_hour_opens_behind_it(self) -> None:
        assert windows("02:30-04:00", zone=BERLIN).opens_ms(ms("2026-03-29 00:00")) == ms("2026-03-29 01:00")

    def test_a_window_within_the_missing_hour_opens_at_the_next_day(self) -> None:
        lost = windows("02:10-02:50", zone=BERLIN)
        assert lost.opens_ms(ms("2026-03-29 00:00")) == ms("2026-03-30 00:10")

    def test_a_window_of_that_day_alone_opens_a_week_later(self) -> None:
        lost = windows("sun 02:10-02:50", zone=BERLIN)
        assert lost.opens_ms(ms("2026-03-29 00:00")) == ms("2026-04-05 00:10")


class TestTheNightThatHasAnHourTwice:
    """25 October 2026 in Berlin: 03:00 of summer is 02:00 of winter."""

    def test_a_window_within_it_is_open_twice(self) -> None:
        twice = windows("02:15-02:45", zone=BERLIN)
        first, second = ms("2026-10-25 02:15", BERLIN), ms("2026-10-25 02:15", BERLIN, fold=1)
        assert second - first == 3_600_000
        assert twice.opens_ms(ms("2026-10-24 12:00")) == first
        assert twice.opens_ms(first + 1_800_000) == second
        assert twice.opens_ms(second + 1_800_000) == ms("2026-10-26 02:15", BERLIN)

    def test_a_window_around_it_lasts_an_hour_longer(self) -> None:
        around = windows("01:00-04:00", zone=BERLIN)
        begins, ends = ms("2026-10-25 01:00", BERLIN), ms("2026-10-25 04:00", BERLIN)
        assert ends - begins == 4 * 3_600_000
        assert around.opens_ms(ends - 1) == ends - 1
        assert around.opens_ms(ends) > ends


@settings(max_examples=60, deadline=None)
@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),
    st.sampled_from([BERLIN, "UTC", "America/St_Johns", "Australia/Lord_Howe"]),
    st.sampled_from([(), *((day,) for day in DAYS)]),
    st.integers(0, 1439),
    st.integers(1, 1439),
)
def test_nothing_is_open_before_and_the_moment_itself_is(
    now: datetime, zone: str, day: tuple[str, ...], start: int, length: int
) -> None:
    end = (start + length) % 1440
    text = " ".join([*day, f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"])
    from_ms = int(now.replace(tzinfo=UTC).timestamp() * 1000)
    opens = windows(text, zone=zone).opens_ms(from_ms)
    assert opens >= from_ms
    assert is_within([text], zone, opens)
    minutes = range(0, (opens - from_ms) // 60_000, 7)
    assert not any(is_within([text], zone, from_ms + minute * 60_000) for minute in minutes)


@pytest.mark.parametrize(
    ("texts", "gap"),
    [
        (("00:00-24:00",), timedelta(0)),
        (("02:00-05:00",), timedelta(hours=21)),
        (("sun 02:00-05:00",), timedelta(days=7, hours=-3)),
        (("sun 22:00-03:00", "wed 00:00-01:00"), timedelta(days=4, hours=21)),
    ],
)
def test_the_longest_time_between_two_windows(texts: tuple[str, ...], gap: timedelta) -> None:
    assert windows(*texts).longest_gap_seconds == gap.total_seconds()


@pytest.mark.parametrize(
    ("declared", "found", "remedy"),
    [
        ({"windows": ["at night"]}, "found 'at night'; expected days and times as in `mon-fri", "Correct it."),
        ({"windows": ["sun 05:00-05:00"]}, "expected two different times", "A whole day is 00:00-24:00."),
        ({"windows": ["25:00-26:00"]}, "found '25:00-26:00'", "Correct it."),
        ({"windows": []}, "expected at least 1 entry", ""),
        (
            {"windows": ["02:00-03:00"], "time_zone": "Berlin"},
            "found 'Berlin'",
            "Write UTC or, say, Europe/Berlin.",
        ),
        ({"windows": ["02:00-03:00"], "zone": "UTC"}, "the unknown field `zone`", "Did you mean `time_zone`?"),
        ({"time_zone": "UTC"}, "no field `windows`", "Add `windows:`."),
    ],
)
def test_a_mistake_is_named_with_its_line_and_its_remedy(
    tmp_path: Path, declared: dict[str, Any], found: str, remedy: str
) -> None:
    file = write_application(tmp_path, cutover_windows=declared)
    line = next(
        n for n, text in enumerate(file.read_text().splitlines(), 1) if text.startswith("cutover_windows:")
    )
    with pytest.raises(InvalidInput) as refused:
        load_application(file)
    assert any(f"{file}:{line + further}: cutover_windows" in str(refused.value) for further in range(5))
    assert found in str(refused.value)
    assert remedy in str(refused.value)


def test_a_wait_that_ends_before_the_next_window_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    weekly = {"windows": ["sun 02:00-05:00"]}
    file = write_application(tmp_path, cutover_windows=weekly, max_wait_seconds=86_400)
    with pytest.raises(InvalidInput) as refused:
        load_application(file)
    assert "max_wait_seconds: found 86400 s, while 594000 s may pass between two `cutover_windows`" in str(
        refused.value
    )
    assert load_application(write_application(tmp_path, cutover_windows=weekly)).max_wait_seconds == 7 * 86_400
