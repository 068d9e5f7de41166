"""Preflight of suppress buffers: the last 8 bytes of a key are the time of a window, or belong to a plain key."""

from __future__ import annotations

import pytest
from kafka_rescale.core.partitioning.partitioners import Murmur2

from tests.unit.preflight import test_preflight_formats as world
from tests.unit.preflight.test_preflight_formats import TIME, found, one_store, records_of

SMALL = [number.to_bytes(8, "big") for number in range(1, 40)]
"""Keys of ``Serdes.Long()``: each of them could be a time soon after 1970."""
ENDING_IN_SMALL = [b"customer-" + number for number in SMALL]
ENDING_IN_TIME = [b"customer-%d" % i + (world.T + i * 977).to_bytes(8, "big") for i in range(40)]


@pytest.fixture(params=[4, 1])
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The partitions of every topic."""
    monkeypatch.setattr(world, "COUNT", request.param)
    return int(request.param)


def declared_as(store_type: str, real: str) -> list[str]:
    """The findings about a buffer of one type that is declared as another."""
    return found(records_of(real), **one_store("s", store_type))


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize("keys", [SMALL, ENDING_IN_SMALL])
def test_a_plain_buffer_whose_keys_end_in_a_number_is_taken(
    keys: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "KEYS", keys)
    assert declared_as("suppress", "suppress") == []


def test_if_its_keys_end_in_real_times_the_places_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "KEYS", ENDING_IN_TIME)
    assert declared_as("suppress", "suppress") == []
    assert declared_as("suppress-window", "suppress")


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize("real", ["suppress-window", "suppress-session"])
def test_a_buffer_of_windows_is_refused_as_a_plain_one(real: str) -> None:
    assert declared_as(real, real) == []
    assert any("records that only a" in text and real in text for text in declared_as("suppress", real))


def test_a_few_windows_that_lie_where_plain_keys_would_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_both(key: bytes) -> bool:
        homes = {Murmur2().partition(each, world.COUNT) for each in (key, key + TIME)}
        return len(homes) == 1

    monkeypatch.setattr(world, "KEYS", [key for key in world.KEYS if in_both(key)][:2])
    (text,) = declared_as("suppress", "suppress-window")
    assert text.endswith("Declare `type: suppress-window`.")


def test_every_type_that_one_partition_leaves_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "COUNT", 1)
    text = declared_as("timestamped-key-value", "suppress-session")[0]
    assert text.endswith("Declare `type: suppress-window` or `type: suppress-session`, as the program has it.")
    monkeypatch.setattr(world, "KEYS", SMALL)
    (text,) = declared_as("timestamped-key-value", "suppress")
    assert text.endswith("Declare `type: suppress` or `type: suppress-window`, as the program has it.")
