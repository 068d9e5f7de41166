"""How much is measured; one number scales all of it."""

from __future__ import annotations

from dataclasses import dataclass

STATES = (1, 8)
"""State of the live application, as multiples of the smallest one."""

GROWTH = (1, 4, 16)
"""Entries of the state with which the pause is measured pre-warmed and not, as multiples of the smallest."""

PROVEN = (1, 10, 100)
"""Entries of the store that is proven, in tenths of the records that are copied."""

BEFORE, AFTER = 4, 8
"""Partitions before and after."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of one run.

    :param flights: processed by the application before the measurement begins, at state 1×.
    :param flights_per_second: input that goes on arriving all the time.
    :param live_seconds: how long it can go on arriving.
    :param records: of the changelog that is copied.
    :param repeats: of every contestant of the copy.
    :param keys: entries of the smallest state that is pre-warmed.
    """

    flights: int
    flights_per_second: int
    live_seconds: int
    records: int
    repeats: int
    keys: int

    @classmethod
    def scaled(cls, scale: float, repeats: int, keys: int | None = None) -> Sizes:
        """Return the sizes of a scale; 1 is what the published figures are measured with.

        :param keys: as given by a person, whatever the scale.
        """
        return cls(
            flights=max(500, int(50_000 * scale)),
            flights_per_second=max(20, min(200, int(200 * scale * 10))),
            live_seconds=900,
            records=max(2_000, int(1_000_000 * scale)),
            repeats=repeats,
            keys=keys or max(1_000, int(40_000 * scale)),
        )
