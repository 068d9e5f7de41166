"""Partitioning keys of changelog keys, against byte vectors per store type."""

from __future__ import annotations

import pytest
from kafka_rescale.core.changelog_formats import FORMATS, format_of
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.partitioners import Murmur2

START, MINUTE = 1_600_000_000_000, 60_000
WINDOW = bytes.fromhex("666f6f62617200000174876e800000000000")
SESSION = bytes.fromhex("666f6f62617200000174876f6a6000000174876e8000")
VECTORS = {
    "key-value": (b"foobar", (0, 2, 6, 0, 6)),
    "timestamped-key-value": (b"foobar", (0, 2, 6, 0, 6)),
    "window": (WINDOW, (0, 2, 6, 0, 6)),
    "timestamped-window": (WINDOW, (0, 2, 6, 0, 6)),
    "session": (SESSION, (0, 2, 6, 0, 6)),
}
COUNTS = (2, 4, 8, 6, 12)


@pytest.mark.parametrize("store_type", FORMATS)
def test_every_store_type_has_a_vector_and_finds_the_inner_key(store_type: str) -> None:
    changelog_key, partitions = VECTORS[store_type]
    key = format_of(store_type).partitioning_key(changelog_key)
    assert key == b"foobar"
    assert tuple(Murmur2().partition(key, n) for n in COUNTS) == partitions


@pytest.mark.parametrize(("whole_key", "wrong"), [(WINDOW, (1, 1, 1, 3, 9)), (SESSION, (1, 1, 1, 5, 5))])
def test_the_whole_key_of_a_window_would_go_elsewhere(whole_key: bytes, wrong: tuple[int, ...]) -> None:
    assert tuple(Murmur2().partition(whole_key, n) for n in COUNTS) == wrong


def test_the_vectors_are_what_the_schemas_say() -> None:
    start, end = (t.to_bytes(8, "big") for t in (START, START + MINUTE))
    assert b"".join((b"foobar", start, bytes(4))) == WINDOW
    assert b"".join((b"foobar", end, start)) == SESSION


@pytest.mark.parametrize(("store_type", "shortest"), [("window", 12), ("timestamped-window", 12), ("session", 16)])
def test_an_empty_inner_key_is_a_key_and_one_byte_less_is_not(store_type: str, shortest: int) -> None:
    assert format_of(store_type).partitioning_key(bytes(shortest)) == b""
    with pytest.raises(UnsafeState) as error:
        format_of(store_type).partitioning_key(bytes(shortest - 1))
    assert str(error.value) == (
        f"changelog key 0x{'00' * (shortest - 1)}: found {shortest - 1} bytes; "
        f"expected at least {shortest} bytes in a {store_type} changelog. "
        "The store is of another type; declare its real type in the application file."
    )


def test_an_unknown_store_type_is_refused() -> None:
    with pytest.raises(InvalidInput) as error:
        format_of("rocksdb")
    assert str(error.value) == (
        "store type: found 'rocksdb'; expected one of key-value, session, timestamped-key-value, "
        "timestamped-window, window. The DSL's aggregate/count/reduce without a window use timestamped-key-value."
    )
