"""Several stores in one plan: what differs between the stores, as a column that depends on each row's store.

A plan costs Spark half a second or more, whatever it reads. So stores share a plan, and every row has the place of
its store among them in ``STORE``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sf

STORE = "store"

Constant = int | bool | None


def by_store(values: Sequence[Constant], kind: str) -> Column:
    """Return the value of each row's store.

    :param values: the values, by the places of the stores.
    :param kind: Spark's type of the values.
    """
    if len(set(values)) == 1:
        return sf.lit(values[0]).cast(kind)
    return sf.get(_array(values, kind), sf.col(STORE))


def by_partition(values: Sequence[Sequence[Constant]], kind: str, partition: str) -> Column:
    """Return a value for each row: that of a partition of the row's store; null if there is no such value.

    :param values: the values, by the places of the stores, and by partition.
    :param kind: Spark's type of the values.
    :param partition: the column with the number of the partition.
    """
    of_stores = [_array(each, kind) for each in values]
    of_store = of_stores[0] if len(of_stores) == 1 else sf.get(sf.array(*of_stores), sf.col(STORE))
    return sf.get(of_store, sf.col(partition))


def _array(values: Sequence[Constant], kind: str) -> Column:
    # Written as SQL, because every call of a function goes to the JVM and back.
    literals = ("null" if value is None else str(value).lower() for value in values)
    return sf.expr(f"cast(array({', '.join(literals)}) as array<{kind}>)")
