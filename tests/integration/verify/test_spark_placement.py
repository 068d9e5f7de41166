"""Spark places every key as the copy's partitioners do, though it computes hashes and layouts on its own."""

from __future__ import annotations

import random

import pytest
from kafka_rescale.core.formats.changelog_formats import FORMATS, format_of
from kafka_rescale.core.formats.key_layouts import Called, First, KeyLayout
from kafka_rescale.spark.verify.placement import MALFORMED, Placing, homes
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

pytestmark = pytest.mark.integration

USER = "tests.support.user_partitioners:by_adler"
LAYOUTS: list[KeyLayout] = [*dict.fromkeys(each.layout for each in FORMATS.values()), First(5)]


def keys(seed: int) -> list[bytes]:
    """Keys of every length. Many are too short for a layout, and some begin with a length."""
    draw = random.Random(seed)
    plain = [draw.randbytes(length) for length in range(40) for _ in range(8)]
    return [*plain, *(len(key).to_bytes(4) + key + b"rest" for key in plain), bytes(3), b"\xff" * 9]


def placed(spark: SparkSession, placings: list[Placing], given: list[bytes]) -> list[list[tuple[int, int]]]:
    """Return the partitions of all keys, by store."""
    rows = [(store, number, key) for store in range(len(placings)) for number, key in enumerate(given)]
    frame = spark.createDataFrame(rows, "store int, number int, key binary")
    source, target = homes(placings, sf.col("key"))
    found = frame.select("store", "number", source.alias("source"), target.alias("target")).collect()
    of: dict[int, dict[int, tuple[int, int]]] = {}
    for row in found:
        of.setdefault(row["store"], {})[row["number"]] = row["source"], row["target"]
    return [[of[store][number] for number in range(len(given))] for store in range(len(placings))]


@pytest.mark.parametrize("beside", ["other known rules", "a function of the user"])
def test_keys_of_every_layout_and_hash_are_placed_as_by_python(spark: SparkSession, beside: str) -> None:
    named = [(layout, name) for layout in LAYOUTS for name in ("murmur2", "crc32")]
    placings = [Placing(layout, name, "", 4, 6 + n) for n, (layout, name) in enumerate(named)]
    assert all(placing.is_known for placing in placings)
    if beside == "a function of the user":
        placings.append(Placing(format_of("key-value").layout, USER, "t", 4, 8))
        assert not placings[-1].is_known
    given = keys(len(placings))

    found = placed(spark, placings, given)

    for placing, of_store in zip(placings, found, strict=True):
        source, target = placing.partitions(given)
        assert of_store == list(zip(source.tolist(), target.tolist(), strict=True)), placing
    assert any(MALFORMED in home for of_store in found for home in of_store)


def test_what_a_user_has_declared_is_not_known_to_spark() -> None:
    layout = Called(USER)
    assert not Placing(layout, "murmur2", "", 4, 8).is_known
    assert not Placing(LAYOUTS[0], "linear-hashing:2", "", 4, 8).is_known
