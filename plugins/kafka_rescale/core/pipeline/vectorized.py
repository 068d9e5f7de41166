"""User functions that take a whole batch of records instead of one record.

A batch goes from a source through filters, mappings and new keys, where nothing depends on the order of single
records. The batch ends at the first place where the stream branches, or where records are stored, joined or
written. Behind that place, a vectorised function gets one record at a time.

The results are the same in both cases. To make sure of this, records share a call only if the shared columns have
the types that each of these records would give the columns alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import Serde, column_kind
from kafka_rescale.core.pipeline.task import Headers


@dataclass(frozen=True)
class Vectorized:
    """A function of columns. A user gives it to ``filter``, ``map_values`` or ``select_key``.

    :param function: takes a column of values, or a column of keys and a column of values. It returns a column of
        the same length.
    :param to_column: takes a list and its kind (``column_kind``); returns a column. If the kind is given, it
        decides the type of the column, so that the type does not depend on the values of a batch.
    :param to_list: takes a column; returns a list.
    :param alike: takes a list and its kind; returns a mark for every cell, or ``None`` if all cells are alike.
        Only cells with equal marks may share a column.
    :param doubtful: takes a column of results; returns the doubtful places in it. The type of the column was
        inferred from all results, so a result there may differ from the one that the function gives for the record
        alone.
    :param serdes: the serdes of the columns.
    :param result: the serde of the results.
    """

    function: Callable[..., Any]
    to_column: Callable[[list[Any], str], Any] = lambda cells, kind: cells
    to_list: Callable[[Any], list[Any]] = list
    alike: Callable[[list[Any], str], Sequence[Hashable] | None] = lambda cells, kind: None
    doubtful: Callable[[Any], Sequence[int]] = lambda column: ()
    serdes: tuple[Serde | None, ...] = ()
    result: Serde | None = None

    def __call__(self, *row: Any) -> Any:
        """Return the result for one record."""
        return self.batch(*([cell] for cell in row))[0]

    def batch(self, *columns: list[Any]) -> list[Any]:
        """Return the results for many records.

        :raises InvalidInput: the function has returned more or fewer results than there are records.
        """
        kinds = [*map(column_kind, self.serdes), *("" for _ in columns)]
        marks = [each for each in map(self.alike, columns, kinds) if each is not None]
        if not marks:
            return self._together(columns, kinds)
        calls: dict[tuple[Hashable, ...], list[int]] = {}
        for place, mark in enumerate(zip(*marks, strict=True)):
            calls.setdefault(mark, []).append(place)
        results: list[Any] = [None] * len(columns[0])
        for places in calls.values():
            found = self._together([[column[place] for place in places] for column in columns], kinds)
            for place, result in zip(places, found, strict=True):
                results[place] = result
        return results

    def _together(self, columns: Sequence[list[Any]], kinds: Sequence[str]) -> list[Any]:
        """Call the function once for all records and return its results.

        If the result of a record is doubtful, this method calls the function again for this record alone.
        """
        made = self.function(*map(self.to_column, columns, kinds))
        found = self.to_list(made)
        if len(found) != len(columns[0]):
            raise InvalidInput(
                f"vectorised function {getattr(self.function, '__name__', self.function)}",
                found=f"{len(found)} results for {len(columns[0])} records",
                expected="a result for every record, in their order",
                remedy="Let the function return a column of the same length. To leave records out, use filter.",
            )
        # The serde of doubles writes every number as a double, so the inferred type makes no difference there.
        if len(found) > 1 and column_kind(self.result) != "float":
            for place in self.doubtful(made):
                found[place] = self(*(column[place] for column in columns))
        return found


def with_serdes(
    function: Callable[..., Any], *serdes: Serde | None, result: Serde | None = None
) -> Callable[..., Any]:
    """Return the function with the serdes of its columns and results.

    A function that is not vectorised needs no serdes, and is returned unchanged.
    """
    return replace(function, serdes=serdes, result=result) if isinstance(function, Vectorized) else function


@dataclass
class Batch:
    """Records that go through the pipeline together, as columns.

    :param places: the place of each record among the records that the runner has handed over.
    """

    keys: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, place: int, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record."""
        self.keys.append(key)
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.headers.append(headers)
        self.places.append(place)

    def keep(self, chosen: Sequence[object]) -> None:
        """Keep the records for which ``chosen`` has a true value. Remove the others."""
        for column in (self.keys, self.values, self.timestamps, self.headers, self.places):
            column[:] = [cell for cell, is_chosen in zip(column, chosen, strict=True) if is_chosen]


def applied(function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    """Return a function's results for all records. The function may be vectorised or not."""
    if not columns[0]:
        return []
    return function.batch(*columns) if isinstance(function, Vectorized) else list(map(function, *columns))
