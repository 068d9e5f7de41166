"""Functions of a pipeline that work on pandas or Arrow columns.

``None`` is missing in a column, and what is missing in a result is ``None``: in a value, a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_rescale.core.pipeline.vectorized import Vectorized


def on_pandas(function: Callable[..., Any]) -> Vectorized:
    """Return a function of one ``pandas.Series`` (values) or two (keys, values) that returns one as long."""
    return Vectorized(function, _series, _series_to_list)


def on_arrow(function: Callable[..., Any]) -> Vectorized:
    """Return a function of one ``pyarrow.Array`` (values) or two (keys, values) that returns one as long."""
    return Vectorized(function, _array, _array_to_list)


def _series(cells: list[Any]) -> Any:
    import pandas as pd

    return pd.Series(cells)


def _series_to_list(series: Any) -> list[Any]:
    boxed = series.astype(object)
    found: list[Any] = boxed.where(series.notna(), None).tolist()
    return found


def _array(cells: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(cells)


def _array_to_list(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found
