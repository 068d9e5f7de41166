"""The expected results of the flights application, for data that a reader can add up by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from testbed import outputs
from testbed.flights import HOUR_MS, Dataset, Hour, Session, load
from testbed.outputs import compare_with_expected

A, B = "N1", "N2"


@pytest.fixture
def dataset() -> Dataset:
    rows = [
        # number, hour, tailnum, origin, distance, arr_delay
        (0, 0, A, "EWR", 100, 5),
        (1, 12, A, "JFK", 10, None),
        (2, 12, None, "JFK", 1000, 7),
        (3, 25, A, "EWR", 1, -9),
        (4, 25, B, "EWR", 50, None),
    ]
    columns = ["number", "timestamp_ms", "tailnum", "origin", "distance", "arr_delay"]
    flights = pd.DataFrame(rows, columns=columns).astype({"arr_delay": "Int64"})
    flights["timestamp_ms"] *= HOUR_MS
    planes = pd.DataFrame({"tailnum": [A], "manufacturer": ["BOEING"], "model": ["737"]})
    return Dataset(flights, planes, shift_hours=0)


def test_totals_add_up_known_delays_and_leave_unknown_planes_empty(dataset: Dataset) -> None:
    assert dataset.expected_totals() == {
        A: {
            "flights": 3,
            "distance": 111,
            "arr_delay": -4,
            "max_arr_delay": 5,
            "manufacturer": "BOEING",
            "model": "737",
        },
        B: {
            "flights": 1,
            "distance": 50,
            "arr_delay": 0,
            "max_arr_delay": None,
            "manufacturer": None,
            "model": None,
        },
    }


def test_hours_count_flights_of_unknown_aircraft_too(dataset: Dataset) -> None:
    expected = {Hour("EWR", 0): 1, Hour("JFK", 12 * HOUR_MS): 2, Hour("EWR", 25 * HOUR_MS): 2}
    assert dataset.expected_hourly() == expected


def test_a_gap_of_exactly_twelve_hours_belongs_to_the_session(dataset: Dataset) -> None:
    assert dataset.expected_sessions() == {
        Session(A, 0, 12 * HOUR_MS): {"flights": 2, "distance": 110},
        Session(A, 25 * HOUR_MS, 25 * HOUR_MS): {"flights": 1, "distance": 1},
        Session(B, 25 * HOUR_MS, 25 * HOUR_MS): {"flights": 1, "distance": 50},
    }


def test_a_shift_kept_from_an_earlier_replay_gives_the_same_records() -> None:
    first = load(limit=50)
    assert load(limit=50, shift_hours=first.shift_hours).flight_records == first.flight_records
    times = [timestamp for timestamp, _ in first.flight_records]
    assert times == sorted(times)
    assert all(timestamp < times[0] for timestamp, _, _ in first.plane_records)


def test_a_prefix_is_what_the_first_flights_alone_give() -> None:
    whole = load(limit=200)
    assert whole.prefix(120).expected_totals() == load(limit=120).expected_totals()
    assert whole.prefix(120).flight_records == whole.flight_records[:120]


def test_a_flight_that_lies_twice_in_the_log_counts_twice_and_a_lost_one_not_at_all(dataset: Dataset) -> None:
    totals = dataset.logged([4, 0, 1, 1, 2]).expected_totals()
    assert {tail: (total["flights"], total["distance"]) for tail, total in totals.items()} == {
        A: (3, 120),
        B: (1, 50),
    }
    assert dataset.logged([0, 1, 2, 3, 4]).expected_totals() == dataset.expected_totals()


def read_in(dataset: Dataset) -> dict[str, dict[Any, Any]]:
    """What an application that makes no mistake leaves, by topic."""
    expected: dict[str, dict[Any, Any]] = {
        "aircraft-totals": dataset.expected_totals(),
        "aircraft-sessions": dataset.expected_sessions(),
        "airport-hourly": dataset.expected_hourly(),
    }
    names = {"app-{}-changelog", "{}-output"}
    return {name.format(store): dict(results) for store, results in expected.items() for name in names}


def test_a_wrong_result_a_missing_one_and_one_too_many_are_found_in_every_topic(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_in(dataset)
    monkeypatch.setattr(outputs, "read_results", lambda _, topic, *__: found[topic])

    def differences() -> list[str]:
        return compare_with_expected({}, dataset, application_id="app").differences

    assert differences() == []
    for topic, right in read_in(dataset).items():
        key = next(iter(right))
        for wrong in ({**right, key: "another"}, {k: v for k, v in right.items() if k != key}, {**right, "x": 1}):
            found[topic] = wrong
            (difference,) = differences()
            assert difference.startswith(f"{topic} "), difference
        found[topic] = right
