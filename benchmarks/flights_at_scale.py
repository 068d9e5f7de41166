"""The demo's flights several times over. Every copy has its own aircraft and airports, so the state grows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.sizes import Sizes
from testbed.flights import Dataset, load


def flights_at_scale(sizes: Sizes, copies: int) -> tuple[Dataset, int]:
    """Return flights of the first months of the year, ``copies`` times, in the order of their departure.

    :returns: the flights, and how many of them are processed before the measurement begins. The others arrive
        during it.
    """
    live = sizes.flights_per_second * sizes.live_seconds
    year = load(limit=sizes.flights + -(-live // copies))
    return multiplied(year, copies), sizes.flights * copies


def multiplied(once: Dataset, copies: int) -> Dataset:
    """Return a dataset with ``copies`` times the flights, planes, aircraft and airports."""
    flights = once.flights.loc[once.flights.index.repeat(copies)].reset_index(drop=True)
    copy = pd.Series(np.arange(len(flights)) % copies)
    for column in ("tailnum", "origin"):
        flights[column] = _suffixed(flights[column], copy)
    flights["number"] = range(len(flights))
    planes = once.planes.loc[once.planes.index.repeat(copies)].reset_index(drop=True)
    planes["tailnum"] = _suffixed(planes["tailnum"], pd.Series(np.arange(len(planes)) % copies))
    return replace(once, flights=flights, planes=planes)


def _suffixed(names: pd.Series, copy: pd.Series) -> pd.Series:
    """Add the number of the copy to a name.

    The first copy keeps its names, and an unknown aircraft stays unknown.
    """
    return names.where(copy == 0, names + "#" + copy.astype(str))
