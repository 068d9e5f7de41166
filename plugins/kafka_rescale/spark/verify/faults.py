"""Each oracle as a condition on aligned records (``verify_alignment``)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair

EXCUSABLE = frozenset({Oracle.STATE, Oracle.TOMBSTONES, Oracle.SEQUENCE, Oracle.RESIDUE, Oracle.VERSIONS})
"""The oracles that compare one side with the other. The others judge a record by itself, however new it is."""


def judge(aligned: DataFrame, pair: StorePair) -> DataFrame:
    """Return the rows with one boolean column per oracle, never null.

    ``expired``: the record is on one side only, and retention may have deleted it on the other. ``surplus``: a
    record of green is older than any record that blue still has of the key. ``blue_live``, ``blue_tombstoned``,
    and the same for green: the record is the key's last one, and has not expired.

    If the pair has a fence, keys that blue has written behind it are ``excused``: they count for no side, and no
    oracle compares them.
    """
    is_compared = ~sf.col("touched") if pair.fence is not None else sf.lit(True)
    is_last = sf.col("rank") == 1
    blue_lives = is_last & sf.coalesce(~sf.col("blue_tombstone"), sf.lit(False))
    green_lives = is_last & sf.coalesce(~sf.col("green_tombstone"), sf.lit(False))
    expired = _expired(blue_lives, green_lives, pair)
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
        **_content(pair),
        **_versions(pair),
        **_subscriptions(pair),
    }
    named = _excused({"surplus": _surplus(pair), **{o.value: each for o, each in oracles.items()}}, is_compared)
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


def _content(pair: StorePair) -> dict[Oracle, Column]:
    both = _has("blue") & _has("green")
    blue_live, green_live = sf.col("blue_live"), sf.col("green_live")
    is_state = blue_live | green_live
    copied = sf.lit(pair.copied)
    return {
        Oracle.STATE: blue_live & ~(green_live & _same()),
        Oracle.TOMBSTONES: green_live & ~blue_live,
        Oracle.SEQUENCE: copied & both & ~is_state & ~_same(),
        Oracle.RESIDUE: copied & both & _elsewhere(pair),
    }


def _elsewhere(pair: StorePair) -> Column:
    if not pair.modulus:
        return sf.lit(False)
    return ~(sf.col("green_partition") % pair.modulus).eqNullSafe(sf.col("blue_partition"))


def _versions(pair: StorePair) -> dict[Oracle, Column]:
    """A version may be missing on a side only if its own time allowed compaction to remove it there."""
    if pair.versions_since_ms is None:
        return {}
    newer = sf.coalesce("blue_timestamp", "green_timestamp") >= sf.lit(pair.versions_since_ms)
    one_sided = _has("blue") != _has("green")
    return {
        Oracle.VERSIONS: sf.lit(pair.copied) & newer & one_sided & ~(sf.col("blue_live") | sf.col("green_live"))
    }


def _subscriptions(pair: StorePair) -> dict[Oracle, Column]:
    if pair.left is None:
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


def _surplus(pair: StorePair) -> Column:
    return sf.lit(pair.copied) & _has("green") & ~_has("blue") & ~sf.col("green_live")


def _expired(blue_lives: Column, green_lives: Column, pair: StorePair) -> Column:
    """A record may be absent only if the broker has deleted the beginning of the log; its age is no excuse."""
    if pair.expires_before_ms is None:
        return sf.lit(False)
    before = sf.lit(pair.expires_before_ms)
    gone_in_green = (
        blue_lives & ~_has("green") & (sf.col("blue_timestamp") < before) & _trimmed(pair.green, "target")
    )
    gone_in_blue = (
        green_lives & ~_has("blue") & (sf.col("green_timestamp") < before) & _trimmed(pair.blue, "source")
    )
    return sf.coalesce(gone_in_green | gone_in_blue, sf.lit(False))


def _trimmed(log: ComparedLog, partition: str) -> Column:
    flags = sf.array(*(sf.lit(begin > 0) for begin in log.begins))
    return sf.coalesce(sf.get(flags, sf.col(partition)), sf.lit(False))
