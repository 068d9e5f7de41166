"""Aggregates in time windows and sessions: late records, forgotten windows, and a comparison with brute force."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import (
    LONG,
    STRING,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Windowed,
)
from kafka_rescale.core.pipeline.task import Emitted

from tests.support.processing.pipeline_driver import PipelineDriver

FOREVER = timedelta(days=1)

Times = list[tuple[str, int]]
times = st.lists(st.tuples(st.sampled_from(["a", "aa", "b"]), st.integers(0, 200)), max_size=40)


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def counting(windows: TimeWindows | SessionWindows) -> PipelineDriver:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=STRING, value=STRING).group_by_key()
    grouped.windowed_by(windows).count(store="counts").to_stream().to("out")
    return PipelineDriver(builder.build())


def latest(driver: PipelineDriver, windows: TimeWindows | SessionWindows, records: Times) -> dict[Windowed, int]:
    """Return the last values of the output, by windowed key."""
    serde, found = windows.serde(STRING), {}
    assert serde is not None
    for key, time in records:
        for each in driver.pipe("in", key.encode(), b"", time):
            assert each.key is not None
            found[serde.decode(each.key)] = None if each.value is None else LONG.decode(each.value)
    return {key: count for key, count in found.items() if count is not None}


def windowed(key: bytes, *times: int) -> bytes:
    return key + b"".join(map(LONG.encode, times))


class TestTumbling:
    def test_an_update_has_the_key_and_the_start_and_goes_where_the_key_goes(self) -> None:
        driver = counting(TimeWindows(ms(10)))
        assert driver.pipe("in", b"k", b"", 25) == [
            Emitted("out", windowed(b"k", 20), LONG.encode(1), 25, partition_key=b"k")
        ]
        assert driver.changelog("counts") == [(windowed(b"k", 20) + bytes(4), LONG.encode(1), 25, ())]

    def test_a_window_takes_late_records_until_its_grace_period_is_over(self) -> None:
        driver = counting(TimeWindows(ms(10), grace=ms(5)))
        driver.pipe("in", b"k", b"", 3)
        driver.pipe("in", b"other", b"", 14)
        (late,) = driver.pipe("in", b"k", b"", 5)
        assert (late.value, late.timestamp_ms) == (LONG.encode(2), 5)
        driver.pipe("in", b"other", b"", 15)
        assert driver.pipe("in", b"k", b"", 6) == []
        assert driver.tasks[0].dropped_records() == 1

    def test_what_is_late_stays_late_after_a_restart(self) -> None:
        driver = counting(TimeWindows(ms(10)))
        driver.pipe("in", b"k", b"", 25)
        driver.restart()
        assert driver.pipe("in", b"k", b"", 12) == []
        assert len(driver.pipe("in", b"k", b"", 21)) == 1

    @given(times)
    def test_counts_are_those_of_a_brute_force(self, records: Times) -> None:
        windows = TimeWindows(ms(20), grace=FOREVER)
        expected = Counter(Windowed(key, time // 20 * 20, time // 20 * 20 + 20) for key, time in records)
        assert latest(counting(windows), windows, records) == expected


class TestHopping:
    def test_a_record_belongs_to_every_window_that_covers_it(self) -> None:
        windows = TimeWindows(ms(10), advance=ms(4))
        assert list(windows.starts(9)) == [0, 4, 8]
        assert list(windows.starts(3)) == [0]
        assert list(windows.starts(1000)) == [992, 996, 1000]

    @given(times, st.integers(1, 30), st.integers(1, 30))
    def test_counts_are_those_of_a_brute_force(self, records: Times, size: int, advance: int) -> None:
        windows = TimeWindows(ms(max(size, advance)), advance=ms(advance), grace=FOREVER)
        expected: Counter[Windowed] = Counter()
        for key, time in records:
            for start in range(0, time + 1, advance):
                if start + windows.size_ms > time:
                    expected[Windowed(key, start, start + windows.size_ms)] += 1
        assert latest(counting(windows), windows, records) == expected


class TestSessions:
    def test_a_record_between_two_sessions_makes_one_of_them(self) -> None:
        driver = counting(SessionWindows(ms(10), grace=ms(20)))
        driver.pipe("in", b"k", b"", 100)
        driver.pipe("in", b"k", b"", 115)
        merged = driver.pipe("in", b"k", b"", 107)
        assert [(e.key, e.value, e.timestamp_ms) for e in merged] == [
            (windowed(b"k", 100, 100), None, 100),
            (windowed(b"k", 115, 115), None, 115),
            (windowed(b"k", 115, 100), LONG.encode(3), 115),
        ]
        assert [e.partition_key for e in merged] == [b"k"] * 3

    @given(times, st.integers(1, 30))
    def test_sessions_are_the_clusters_of_times(self, records: Times, gap: int) -> None:
        windows = SessionWindows(ms(gap), grace=FOREVER)
        by_key: dict[str, list[int]] = defaultdict(list)
        for key, time in records:
            by_key[key].append(time)
        expected = {
            Windowed(key, cluster[0], cluster[-1]): len(cluster)
            for key, all_times in by_key.items()
            for cluster in clusters(sorted(all_times), gap)
        }
        assert latest(counting(windows), windows, records) == expected


def clusters(sorted_times: list[int], gap: int) -> list[list[int]]:
    found: list[list[int]] = []
    for time in sorted_times:
        if found and time - found[-1][-1] <= gap:
            found[-1].append(time)
        else:
            found.append([time])
    return found


@pytest.mark.parametrize("windows", [TimeWindows(ms(7), advance=ms(2)), SessionWindows(ms(5))])
def test_windowed_keys_are_read_as_they_were_written(windows: TimeWindows | SessionWindows) -> None:
    serde = windows.serde(STRING)
    key = Windowed("k", 12, 19)
    assert serde is not None
    assert serde.decode(serde.encode(key)) == key


def test_windows_that_make_no_sense_are_refused() -> None:
    for wrong in (
        lambda: TimeWindows(ms(0)),
        lambda: TimeWindows(ms(5), advance=ms(6)),
        lambda: TimeWindows(ms(5), grace=ms(-1)),
        lambda: SessionWindows(ms(0)),
    ):
        with pytest.raises(InvalidInput, match="expected"):
            wrong()
    grouped = StreamsBuilder().stream("in").group_by_key()
    with pytest.raises(InvalidInput, match="found 4 ms; expected at least 5 ms"):
        grouped.windowed_by(TimeWindows(ms(5))).count(retention=ms(4))
    with pytest.raises(InvalidInput, match="no merger for sessions"):
        grouped.windowed_by(SessionWindows(ms(5))).aggregate(list, lambda k, v, a: a)
    with pytest.raises(InvalidInput, match="a merger for windows of time"):
        grouped.windowed_by(TimeWindows(ms(5))).aggregate(list, lambda k, v, a: a, lambda k, one, two: one)
