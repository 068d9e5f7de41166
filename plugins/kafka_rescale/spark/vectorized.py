"""Functions of a pipeline that work on pandas or Arrow columns.

``None`` is missing in a column, and what is missing in a result is ``None``: in a value, a tombstone. The type of
a column is that of the stream's serde, whatever a batch holds: inferred from its values, a batch of tombstones, or
of whole numbers with one, would have another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_rescale.core.pipeline.vectorized import Vectorized


def on_pandas(function: Callable[..., Any]) -> Vectorized:
    """Return a function of one ``pandas.Series`` (values) or two (keys, values) that returns one as long.

    Strings come as ``string``, whole numbers as ``Int64``, others as ``float64``; all else as ``object``.
    """
    return Vectorized(function, _series, _series_to_list)


def on_arrow(function: Callable[..., Any]) -> Vectorized:
    """Return a function of one ``pyarrow.Array`` (values) or two (keys, values) that returns one as long.

    Strings come as ``string``, whole numbers as ``int64``, others as ``double``, bytes as ``binary``. What JSON,
    Avro or no serde gives has the type that Arrow infers from the batch: functions have to take any.
    """
    return Vectorized(function, _array, _array_to_list)


def _series(cells: list[Any], kind: str) -> Any:
    import pandas as pd

    return pd.Series(cells, dtype={"string": "string", "integer": "Int64", "float": "float64"}.get(kind, object))


def _series_to_list(series: Any) -> list[Any]:
    boxed = series.astype(object)
    found: list[Any] = boxed.where(series.notna(), None).tolist()
    return found


def _array(cells: list[Any], kind: str) -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "integer": pa.int64(), "float": pa.float64(), "bytes": pa.binary()}
    return pa.array(cells, type=types.get(kind))


def _array_to_list(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found
