"""A partitioner of the user is asked only for keys that the store can have. It may fail on any other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.formats.key_layouts import WHOLE, Trimmed
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.verify.delta import MALFORMED
from kafka_rescale.kafka.verify import stretch
from kafka_rescale.kafka.verify.stretch import read_green
from kafka_rescale.spark.verify.placement import Placing

BY_NUMBER = "tests.support.user_partitioners:claims_to_be_static"
PARTITIONERS = ["murmur2", "linear-hashing:2", BY_NUMBER]
KEY, MALFORMED_KEY = b"c-5", b"x"
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="blue",
    target="green",
    store="hourly",
    store_type="window",
    source_partitions=2,
    target_partitions=3,
)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_the_proof_asks_for_no_key_that_is_malformed(name: str) -> None:
    placing, home = Placing(Trimmed(suffix=12), name, "", 2, 3), partitioner_named(name).partition
    source, target = placing.partitions([MALFORMED_KEY, KEY + bytes(12)])
    assert source.tolist() == [MALFORMED, home(KEY, 2)]
    assert target.tolist() == [MALFORMED, home(KEY, 3)]
    assert [each.tolist() for each in placing.partitions([MALFORMED_KEY])] == [[MALFORMED], [MALFORMED]]


@pytest.mark.parametrize("name", PARTITIONERS)
def test_the_proof_asks_for_no_key_that_is_not_there(name: str) -> None:
    """The values of tombstones, and of subscriptions of version 0, name no primary key."""
    source, target = Placing(WHOLE, name, "", 2, 3).partitions([None, KEY])
    assert (source[0], target[0]) == (MALFORMED, MALFORMED)
    assert target[1] == partitioner_named(name).partition(KEY, 3)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_the_rolling_comparison_asks_for_no_key_that_is_malformed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def batch(*_: object) -> list[tuple[int, list[Any]]]:
        return [(0, [message(MALFORMED_KEY), message(KEY + bytes(12))])]

    monkeypatch.setattr(stretch, "_batches", batch)
    unused: Any = SimpleNamespace(of_green=lambda _: {}, over=None)
    seen = list(read_green(unused, MOVE.model_copy(update={"partitioner": name}), unused, unused, expires=False))
    assert [each.home for each in seen] == [MALFORMED, partitioner_named(name).partition(KEY, 3)]


def message(key: bytes) -> Any:
    """Return a record of green, with the methods of the client library's."""
    values = {"key": key, "value": b"v", "headers": None, "partition": 0, "offset": 0, "timestamp": (1, 1)}
    return SimpleNamespace(**{name: lambda found=found: found for name, found in values.items()})
