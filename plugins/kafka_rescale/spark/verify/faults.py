"""Each oracle as a condition on aligned records (``alignment``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify.stores import by_partition, by_store
from kafka_rescale.spark.verify.subscriptions import has_subscriptions

EXCUSABLE = frozenset({Oracle.STATE, Oracle.TOMBSTONES, Oracle.SEQUENCE, Oracle.RESIDUE, Oracle.VERSIONS})
"""The oracles that compare one side with the other. The others judge a record by itself, however new it is."""


def judge(aligned: DataFrame, pairs: Sequence[StorePair]) -> DataFrame:
    """Return the rows with one boolean column per oracle, never null.

    ``expired``: the record is on one side only, and retention may have deleted it on the other. ``surplus``: a
    record of green is older than any record that blue still has of the key. ``blue_live``, ``blue_tombstoned``,
    and the same for green: the record is the key's last record, and has not expired.

    If the pairs have fences, keys that blue has written behind them are ``excused``: they count for no side, and
    no oracle compares them.

    :param pairs: the pairs that were aligned.
    """
    is_compared = ~sf.col("touched") if any(pair.fence is not None for pair in pairs) else sf.lit(True)
    is_last = sf.col("rank") == 1
    blue_lives = is_last & sf.coalesce(~sf.col("blue_tombstone"), sf.lit(False))
    green_lives = is_last & sf.coalesce(~sf.col("green_tombstone"), sf.lit(False))
    expired = _expired(blue_lives, green_lives, pairs)
    basic = {
        "expired": expired,
        "excused": is_last & ~is_compared,
        "blue_live": blue_lives & ~expired & is_compared,
        "green_live": green_lives & ~expired & is_compared,
        "blue_tombstoned": is_last & sf.coalesce("blue_tombstone", sf.lit(False)) & is_compared,
        "green_tombstoned": is_last & sf.coalesce("green_tombstone", sf.lit(False)) & is_compared,
    }
    with_basics = aligned.withColumns(basic)
    oracles = {
        Oracle.ONE_PARTITION: _split("blue") | _split("green"),
        **_placement(),
        **_content(pairs),
        **_versions(pairs),
        **_subscriptions(pairs),
    }
    named = _excused({"surplus": _surplus(pairs), **{o.value: each for o, each in oracles.items()}}, is_compared)
    return with_basics.withColumns(named)


def _excused(conditions: Mapping[str, Column], is_compared: Column) -> dict[str, Column]:
    compare = {"surplus", *EXCUSABLE}
    return {name: each & is_compared if name in compare else each for name, each in conditions.items()}


def _has(side: str) -> Column:
    return sf.col(f"{side}_offset").isNotNull()


def _placement() -> dict[Oracle, Column]:
    return {
        Oracle.MISPLACED_IN_BLUE: _has("blue") & ~sf.col("blue_partition").eqNullSafe(sf.col("source")),
        Oracle.PLACEMENT: _has("green") & ~sf.col("green_partition").eqNullSafe(sf.col("target")),
    }


def _content(pairs: Sequence[StorePair]) -> dict[Oracle, Column]:
    both = _has("blue") & _has("green")
    blue_live, green_live = sf.col("blue_live"), sf.col("green_live")
    is_state = blue_live | green_live
    copied = _copied(pairs)
    return {
        Oracle.STATE: blue_live & ~(green_live & _same()),
        Oracle.TOMBSTONES: green_live & ~blue_live,
        Oracle.SEQUENCE: copied & both & ~is_state & ~_same(),
        Oracle.RESIDUE: copied & both & _elsewhere(pairs),
    }


def _copied(pairs: Sequence[StorePair]) -> Column:
    return by_store([pair.copied for pair in pairs], "boolean")


def _elsewhere(pairs: Sequence[StorePair]) -> Column:
    if not any(pair.modulus for pair in pairs):
        return sf.lit(False)
    # Null, and so no violation, if the partitioner has no modulus.
    modulus = by_store([pair.modulus or None for pair in pairs], "int")
    return sf.coalesce(sf.col("green_partition") % modulus != sf.col("blue_partition"), sf.lit(False))


def _versions(pairs: Sequence[StorePair]) -> dict[Oracle, Column]:
    """Find versions that are missing on a side although they are too new for compaction to have removed them."""
    if all(pair.versions_since_ms is None for pair in pairs):
        return {}
    since = by_store([pair.versions_since_ms for pair in pairs], "long")
    newer = sf.coalesce(sf.coalesce("blue_timestamp", "green_timestamp") >= since, sf.lit(False))
    one_sided = _has("blue") != _has("green")
    return {Oracle.VERSIONS: _copied(pairs) & newer & one_sided & ~(sf.col("blue_live") | sf.col("green_live"))}


def _subscriptions(pairs: Sequence[StorePair]) -> dict[Oracle, Column]:
    if not has_subscriptions(pairs):
        return {}
    named = sf.col("green_primary").isNotNull()
    return {Oracle.PRIMARY_PARTITION: named & ~sf.col("green_primary").eqNullSafe(sf.col("green_primary_home"))}


def _same() -> Column:
    fields = ("tombstone", "timestamp", "value_1", "value_2", "headers")
    same = sf.lit(True)
    for field in fields:
        same &= sf.col(f"blue_{field}").eqNullSafe(sf.col(f"green_{field}"))
    return same


def _split(side: str) -> Column:
    differs = sf.col(f"{side}_neighbour") != sf.col(f"{side}_partition")
    return sf.coalesce(differs, sf.lit(False))


def _surplus(pairs: Sequence[StorePair]) -> Column:
    return _copied(pairs) & _has("green") & ~_has("blue") & ~sf.col("green_live")


def _expired(blue_lives: Column, green_lives: Column, pairs: Sequence[StorePair]) -> Column:
    """Return whether a record may be absent on a side.

    It may be absent only if the broker has deleted the beginning of that log. Its age alone is no excuse.
    """
    if all(pair.expires_before_ms is None for pair in pairs):
        return sf.lit(False)
    before = by_store([pair.expires_before_ms for pair in pairs], "long")
    blue_begins, green_begins = ([getattr(pair, side).begins for pair in pairs] for side in ("blue", "green"))
    gone_in_green = (
        blue_lives & ~_has("green") & (sf.col("blue_timestamp") < before) & _trimmed(green_begins, "target")
    )
    gone_in_blue = (
        green_lives & ~_has("blue") & (sf.col("green_timestamp") < before) & _trimmed(blue_begins, "source")
    )
    return sf.coalesce(gone_in_green | gone_in_blue, sf.lit(False))


def _trimmed(begins: Sequence[Sequence[int]], partition: str) -> Column:
    flags = by_partition([[begin > 0 for begin in of_store] for of_store in begins], "boolean", partition)
    return sf.coalesce(flags, sf.lit(False))
