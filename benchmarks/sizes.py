"""How much is measured. One number scales all sizes."""

from __future__ import annotations

from dataclasses import dataclass

STATES = (1, 8)
"""Sizes of the live application's state, as multiples of the smallest one."""

GROWTH = (1, 4, 16)
"""Entries of the state for the pause with and without pre-warming, as multiples of the smallest one."""

PROVEN = (1, 10, 100)
"""Entries of the proven store, in tenths of the copied records."""

BEFORE, AFTER = 4, 8
"""Partitions before and after."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of one run.

    :param flights: flights that the application processes before the measurement begins, at state 1×.
    :param flights_per_second: rate of the input, which arrives all the time.
    :param live_seconds: for how long the input can arrive.
    :param records: number of records of the copied changelog.
    :param repeats: number of runs of every contestant of the copy.
    :param keys: number of entries of the smallest pre-warmed state.
    """

    flights: int
    flights_per_second: int
    live_seconds: int
    records: int
    repeats: int
    keys: int

    @classmethod
    def scaled(cls, scale: float, repeats: int, keys: int | None = None) -> Sizes:
        """Return the sizes of a scale. The published figures are measured with scale 1.

        :param keys: number of entries, if a person gives it. It does not depend on the scale.
        """
        return cls(
            flights=max(500, int(50_000 * scale)),
            flights_per_second=max(20, min(200, int(200 * scale * 10))),
            live_seconds=900,
            records=max(2_000, int(1_000_000 * scale)),
            repeats=repeats,
            keys=keys or max(1_000, int(40_000 * scale)),
        )
