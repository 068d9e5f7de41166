"""Functions of a pipeline that work on pandas or Arrow columns.

``None`` becomes a missing value in a column. A missing value in a result becomes ``None``; as the value of a
record, ``None`` is a tombstone. The type of a column is that of the stream's serde, whatever a batch holds. If it
were inferred from the values, a batch of tombstones, or of whole numbers with a tombstone, would have another
type. If the serde doesn't tell the type, only records with values of the same shape go together. So no result
depends on the other records of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.vectorized import Vectorized


def on_pandas(function: Callable[..., Any]) -> Vectorized:
    """Wrap a function of one ``pandas.Series`` (values) or two (keys, values). It returns a series of that length.

    Strings come as ``string``, whole numbers as ``Int64``, other numbers as ``float64``, all other values as
    ``object``. Whole numbers and missing values come in separate calls: ``Series.map`` would make floats of them.
    """
    return Vectorized(function, _series, _series_to_list, _missing_or_not, _were_whole_perhaps)


def on_arrow(function: Callable[..., Any]) -> Vectorized:
    """Wrap a function of one ``pyarrow.Array`` (values) or two (keys, values). It returns an array of that length.

    Strings come as ``string``, whole numbers as ``int64``, other numbers as ``double``, bytes as ``binary``. For
    JSON, Avro or no serde, Arrow infers the type from the value, so the function has to take any type. Values of
    different types, or with other fields or another order of fields, come in separate calls, and so does ``None``.
    """
    return Vectorized(function, _array, _array_to_list, _shapes)


def _series(cells: list[Any], kind: str) -> Any:
    import pandas as pd

    return pd.Series(cells, dtype={"string": "string", "integer": "Int64", "float": "float64"}.get(kind, object))


def _series_to_list(series: Any) -> list[Any]:
    boxed = series.astype(object)
    found: list[Any] = boxed.where(series.notna(), None).tolist()
    return found


def _missing_or_not(cells: list[Any], kind: str) -> Sequence[Hashable] | None:
    return [cell is None for cell in cells] if kind == "integer" and None in cells else None


def _were_whole_perhaps(series: Any) -> Sequence[int]:
    """Return the places of floats that may have been whole numbers before pandas made floats of the column."""
    import numpy as np

    if not isinstance(series.dtype, np.dtype) or series.dtype.kind != "f":
        return ()
    values = series.to_numpy()
    places: list[int] = np.flatnonzero(values == np.floor(values)).tolist()
    return places


def _array(cells: list[Any], kind: str) -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "integer": pa.int64(), "float": pa.float64(), "bytes": pa.binary()}
    try:
        return pa.array(cells, type=types.get(kind))
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidInput(
            "column of a function on_arrow",
            found=f"a {type(cells[0]).__name__} that no Arrow type holds: {error}"[:200],
            expected="numbers of 64 bits, lists of one type, and no windowed keys",
            remedy="Use on_pandas, which gives such values as objects, or a function of one record.",
        ) from error


def _shapes(cells: list[Any], kind: str) -> Sequence[Hashable] | None:
    return None if kind else list(map(_shape, cells))


def _shape(cell: Any) -> Hashable:
    """Return the properties of a value that decide its Arrow type."""
    if isinstance(cell, dict):
        return tuple((name, _shape(value)) for name, value in cell.items())
    if isinstance(cell, list):
        return (list, *dict.fromkeys(map(_shape, cell)))
    if isinstance(cell, Decimal):
        return Decimal, len(cell.as_tuple().digits), cell.as_tuple().exponent
    return type(cell), getattr(cell, "tzinfo", None)


def _array_to_list(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found
