"""Which partitions a key belongs to, as columns.

Spark computes the hashes of Kafka's own clients. The copy uses another implementation of these hashes, and of the
layouts of keys, so a mistake in one implementation can't hide itself. A user's function, and a partitioner that is
built on a hash, are called in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.key_layouts import First, KeyLayout, LengthPrefixed, Trimmed
from kafka_rescale.core.partitioning.partitioners import homes_of_known, partitioner_named
from kafka_rescale.spark.verify.hashes import HASHES
from kafka_rescale.spark.verify.stores import STORE, by_store

MALFORMED = -1

Homes = tuple[Column, Column]


@dataclass(frozen=True)
class Placing:
    """How the keys of a store get their partitions.

    :param layout: where in the key the partitioning key is.
    :param key_topic: the topic name that is passed to a user's partitioner.
    :param source: number of partitions of blue.
    :param target: number of partitions of green.
    """

    layout: KeyLayout
    partitioner: str
    key_topic: str
    source: int
    target: int

    @property
    def is_known(self) -> bool:
        """Whether Spark can compute the partitions."""
        return self.partitioner in HASHES and isinstance(self.layout, Trimmed | First | LengthPrefixed)

    def partitions(self, keys: Sequence[bytes | None]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the partitions of keys in blue and in green; ``MALFORMED`` for what is no key of the store."""
        # Look it up by name: a user's function is imported where it runs, and never pickled.
        partitioner = partitioner_named(self.partitioner, self.key_topic)
        present = iter(self.layout.extract([key for key in keys if key is not None]))
        partitioned = [None if key is None else next(present) for key in keys]
        source, target = (
            homes_of_known(partitioner, partitioned, n, MALFORMED) for n in (self.source, self.target)
        )
        return np.array(source, np.int32), np.array(target, np.int32)


def homes(placings: Sequence[Placing], key: Column) -> Homes:
    """Return the partitions of a key in blue and in green; ``MALFORMED`` if there is none that the store can have.

    :param placings: how keys get their partitions, by the places of the stores.
    """
    if not all(placing.is_known for placing in placings):
        found = _in_python(placings)(sf.col(STORE), key)
        return found["source"], found["target"]
    hashes = _by_rule(placings, key)
    counts = [placing.source for placing in placings], [placing.target for placing in placings]
    source, target = (sf.coalesce((hashes % by_store(of, "int")).cast("int"), sf.lit(MALFORMED)) for of in counts)
    return source, target


def _by_rule(placings: Sequence[Placing], key: Column) -> Column:
    """Return the hash of a key; null if it is malformed."""
    rules = [(placing.layout, placing.partitioner) for placing in placings]
    (layout, name), *others = dict.fromkeys(rules)
    found = HASHES[name](_partitioning_key(layout, key))
    for rule in others:
        is_of_rule = by_store([each == rule for each in rules], "boolean")
        found = sf.when(is_of_rule, HASHES[rule[1]](_partitioning_key(rule[0], key))).otherwise(found)
    return found


def _partitioning_key(layout: KeyLayout, key: Column) -> Column:
    length = sf.length(key)
    if isinstance(layout, LengthPrefixed):
        width = sf.conv(sf.hex(sf.substring(key, 1, 4)), 16, 10).cast("long")
        fits = (length >= 4) & (width + 4 <= length)
        return sf.when(fits, sf.substring(key, sf.lit(5), width.cast("int")))
    if isinstance(layout, First):
        return sf.when(length >= layout.width, sf.substring(key, 1, layout.width))
    assert isinstance(layout, Trimmed)
    least = layout.prefix + layout.suffix
    return sf.when(length >= least, sf.substring(key, sf.lit(layout.prefix + 1), length - least)) if least else key


def _in_python(placings: Sequence[Placing]) -> Callable[[Column, Column], Column]:
    def homes_of(stores: pa.Array, keys: pa.Array) -> pa.Array:
        source, target = (np.empty(len(keys), np.int32) for _ in range(2))
        of = stores.to_numpy(zero_copy_only=False)
        for store in np.unique(of):
            rows = np.flatnonzero(of == store)
            source[rows], target[rows] = placings[store].partitions(keys.take(pa.array(rows)).to_pylist())
        return pa.StructArray.from_arrays([pa.array(source), pa.array(target)], ["source", "target"])

    udf: Callable[[Column, Column], Column] = sf.arrow_udf(homes_of, "source int, target int")
    return udf


def without_left_behind(log: DataFrame, is_asked: Column, home: Column) -> DataFrame:
    """Return logs without what keys have left behind in a partition that is not their home.

    Records outside their key's home are left out if the key's last record in that partition is a tombstone. Such a
    key is live only in its home partition. Without the tombstone the records stay, and the proof finds them: as
    misplaced, and as one key in two partitions if the key was copied as well.

    :param is_asked: whether a record may be left out.
    :param home: the partition that each key belongs to.
    """
    newest_first = Window.partitionBy(STORE, "is_green", "key", "partition").orderBy(sf.desc("offset"))
    left_behind = is_asked & sf.col("is_buried") & (sf.col("partition") != sf.col("home"))
    marked = log.withColumns({"home": home, "is_buried": sf.first("tombstone").over(newest_first)})
    return marked.filter(~sf.coalesce(left_behind, sf.lit(False))).drop("home", "is_buried")
