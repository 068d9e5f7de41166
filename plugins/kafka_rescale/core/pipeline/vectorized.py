"""Functions of the user's that take a whole batch of records instead of one.

Batches reach them as far as nothing before depends on the order of single records: from a source through filters,
mappings and new keys, up to the first place where the stream branches, is stored, joined or written. Behind that
they are called with one record at a time; the results are the same. For that, records only share a call if the
columns that it gets are what each of them would make alone.
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
    """A function of columns, to be given to ``filter``, ``map_values`` or ``select_key``.

    :param function: gets a column of values, or one of keys and one of values, and returns a column as long.
    :param to_column: makes a column of a list and its kind (``column_kind``), so that the type of a column never
        depends on which values are in a batch.
    :param to_list: makes a list of a column.
    :param alike: gives every cell of a list and its kind a mark, and only those of equal marks may share a column;
        ``None`` if all may.
    :param doubtful: says in which places of a column there may be something else than the function gives a record
        alone, because the type of the column was inferred from all results.
    :param serdes: of the columns.
    :param result: how results are written.
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

        :raises InvalidInput: there are more or fewer.
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
        """Return the results of one call, and of calls for the records for which it leaves a doubt."""
        made = self.function(*map(self.to_column, columns, kinds))
        found = self.to_list(made)
        if len(found) != len(columns[0]):
            raise InvalidInput(
                f"vectorised function {getattr(self.function, '__name__', self.function)}",
                found=f"{len(found)} results for {len(columns[0])} records",
                expected="a result for every record, in their order",
                remedy="Return a column as long as the ones it gets; leave records out by filter.",
            )
        # A double is written as one, whatever number it was before.
        if len(found) > 1 and column_kind(self.result) != "float":
            for place in self.doubtful(made):
                found[place] = self(*(column[place] for column in columns))
        return found


def with_serdes(
    function: Callable[..., Any], *serdes: Serde | None, result: Serde | None = None
) -> Callable[..., Any]:
    """Return a function, vectorised or not, that knows how its columns and its results are written."""
    return replace(function, serdes=serdes, result=result) if isinstance(function, Vectorized) else function


@dataclass
class Batch:
    """Records that go through the pipeline together, as columns.

    :param places: where each of them was in what the runner has handed over.
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
        """Leave out the records for which this isn't true."""
        for column in (self.keys, self.values, self.timestamps, self.headers, self.places):
            column[:] = [cell for cell, is_chosen in zip(column, chosen, strict=True) if is_chosen]


def applied(function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    """Return the results of a function, vectorised or not, for every record."""
    if not columns[0]:
        return []
    return function.batch(*columns) if isinstance(function, Vectorized) else list(map(function, *columns))
