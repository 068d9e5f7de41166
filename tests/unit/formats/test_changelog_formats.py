"""The partitioning keys of changelog keys, compared with byte vectors for each store type."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS, PROCESSOR, REFUSED, format_of
from kafka_rescale.core.formats.record_shapes import fits
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.partitioners import Murmur2

START, MINUTE = 1_600_000_000_000, 60_000
WINDOW = bytes.fromhex("666f6f62617200000174876e800000000000")
SESSION = bytes.fromhex("666f6f62617200000174876f6a6000000174876e8000")
OUTER_JOIN = bytes.fromhex("00000174876e800001666f6f626172")
SUBSCRIPTION = bytes.fromhex("00000003616263666f6f626172")
SUPPRESSED = bytes.fromhex("666f6f62617200000174876e8000")
FOOBAR, ABC = (0, 2, 6, 0, 6), (1, 3, 3, 3, 3)
VECTORS = {
    "key-value": (b"foobar", b"foobar", FOOBAR),
    "timestamped-key-value": (b"foobar", b"foobar", FOOBAR),
    "versioned": (b"foobar", b"foobar", FOOBAR),
    "window": (WINDOW, b"foobar", FOOBAR),
    "timestamped-window": (WINDOW, b"foobar", FOOBAR),
    "join-window": (WINDOW[:-1] + b"\x07", b"foobar", FOOBAR),
    "session": (SESSION, b"foobar", FOOBAR),
    "outer-join": (OUTER_JOIN, b"foobar", FOOBAR),
    "foreign-key-subscription": (SUBSCRIPTION, b"abc", ABC),
    "suppress": (b"foobar", b"foobar", FOOBAR),
    "suppress-window": (SUPPRESSED, b"foobar", FOOBAR),
    "suppress-session": (SESSION, b"foobar", FOOBAR),
    "processor": (b"foobar", b"foobar", FOOBAR),
}
COUNTS = (2, 4, 8, 6, 12)


def partitions(key: bytes) -> tuple[int, ...]:
    """Murmur2's partitions for the counts of the vectors."""
    return tuple(Murmur2().partition(key, n) for n in COUNTS)


def first_dot(key: bytes) -> bytes | None:
    """A user's extractor: it returns what is before the first dot."""
    return key.partition(b".")[0] if b"." in key else None


@pytest.mark.parametrize("store_type", FORMATS)
def test_every_store_type_has_a_vector_and_finds_the_partitioning_key(store_type: str) -> None:
    changelog_key, expected, places = VECTORS[store_type]
    key = format_of(store_type, "whole" if store_type == PROCESSOR else "").partitioning_key(changelog_key)
    assert key == expected
    assert partitions(key) == places


@pytest.mark.parametrize(
    ("plain", "timestamped"), [("key-value", "timestamped-key-value"), ("window", "timestamped-window")]
)
def test_a_timestamped_store_is_treated_like_a_plain_one(plain: str, timestamped: str) -> None:
    """Kafka Streams logs the value without the time in front of it, so no record tells which of both wrote it."""
    assert replace(FORMATS[plain], store_type=timestamped) == FORMATS[timestamped]
    sample = Sample("t", 0, 0, VECTORS[plain][0], START, START.to_bytes(8, "big") + b"value")
    assert fits(FORMATS[plain], sample)
    assert fits(FORMATS[timestamped], sample)


@pytest.mark.parametrize(
    ("whole_key", "wrong"),
    [
        (WINDOW, (1, 1, 1, 3, 9)),
        (SESSION, (1, 1, 1, 5, 5)),
        (OUTER_JOIN, (0, 0, 0, 2, 8)),
        (SUBSCRIPTION, (0, 2, 6, 0, 6)),
        (SUPPRESSED, (1, 3, 3, 5, 11)),
    ],
)
def test_the_whole_key_would_go_elsewhere(whole_key: bytes, wrong: tuple[int, ...]) -> None:
    assert partitions(whole_key) == wrong


def test_the_vectors_are_what_the_schemas_say() -> None:
    start, end = (t.to_bytes(8, "big") for t in (START, START + MINUTE))
    assert b"".join((b"foobar", start, bytes(4))) == WINDOW
    assert b"".join((b"foobar", end, start)) == SESSION
    assert b"".join((start, b"\x01", b"foobar")) == OUTER_JOIN
    assert b"".join((b"\0\0\0\x03", b"abc", b"foobar")) == SUBSCRIPTION
    assert b"".join((b"foobar", start)) == SUPPRESSED


@pytest.mark.parametrize(
    ("store_type", "shortest"),
    [
        ("window", 12),
        ("timestamped-window", 12),
        ("join-window", 12),
        ("session", 16),
        ("outer-join", 9),
        ("foreign-key-subscription", 4),
        ("suppress-window", 8),
        ("suppress-session", 16),
    ],
)
def test_an_empty_partitioning_key_is_a_key_and_one_byte_less_is_not(store_type: str, shortest: int) -> None:
    assert format_of(store_type).partitioning_key(bytes(shortest)) == b""
    with pytest.raises(UnsafeState, match=f"found {shortest - 1} bytes; expected .* in a {store_type} changelog"):
        format_of(store_type).partitioning_key(bytes(shortest - 1))


def test_a_key_that_is_too_short_is_named() -> None:
    with pytest.raises(UnsafeState) as error:
        format_of("window").partitioning_keys([WINDOW, b"short"])
    assert str(error.value) == (
        "changelog key 0x73686f7274: found 5 bytes; expected at least 12 bytes in a window changelog. "
        "The store is of another type; declare its real type in the application file."
    )


@pytest.mark.parametrize("length", [10, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_foreign_key_longer_than_its_key_is_none(length: int) -> None:
    with pytest.raises(UnsafeState, match="expected 4 bytes of length, a foreign key of so many bytes"):
        format_of("foreign-key-subscription").partitioning_key(length.to_bytes(4, "big") + b"abc")


@pytest.mark.parametrize(
    ("extractor", "changelog_key", "expected"),
    [
        ("whole", b"foobar", b"foobar"),
        ("drop-last-4", b"foobar\0\0\0\x02", b"foobar"),
        ("first-6", b"foobar and more", b"foobar"),
        (f"{__name__}:first_dot", b"foobar.2026.11", b"foobar"),
    ],
)
def test_a_processor_store_has_the_extractor_that_is_declared(
    extractor: str, changelog_key: bytes, expected: bytes
) -> None:
    assert format_of(PROCESSOR, extractor).partitioning_key(changelog_key) == expected


@pytest.mark.parametrize("extractor", ["drop-last-7", "first-7", f"{__name__}:first_dot"])
def test_a_key_from_which_an_extractor_gets_nothing_is_unsafe(extractor: str) -> None:
    with pytest.raises(UnsafeState, match="in a processor changelog"):
        format_of(PROCESSOR, extractor).partitioning_keys([b"foobar.", b"foobar"])


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("of_text", "'foobar', which is of type str"),
        ("before_a_bar", "ValueError: subsection not found"),
    ],
)
def test_an_extractor_that_fails_or_gives_no_bytes_is_named_with_the_key(function: str, found: str) -> None:
    with pytest.raises(UnsafeState) as error:
        format_of(PROCESSOR, f"tests.support.user_partitioners:{function}").partitioning_keys([b"foobar-1"])
    assert str(error.value) == (
        f"partitioning_key tests.support.user_partitioners:{function} for changelog key 0x666f6f6261722d31: found "
        f"{found}; expected the partitioning key as bytes, or None. Mend the function: return bytes, or None for "
        "a key in which it finds none."
    )


@pytest.mark.parametrize("extractor", ["", "drop-last-0", "drop-last-x", "first--1", "last-4", "Whole"])
def test_an_extractor_that_says_nothing_is_refused(extractor: str) -> None:
    with pytest.raises(InvalidInput) as error:
        format_of(PROCESSOR, extractor)
    assert str(error.value) == (
        f"partitioning_key: found {extractor!r}; expected whole, drop-last-N, first-N (N bytes), or "
        "module:function. "
        "Say which bytes of the store's keys are the key of the records that it was made from."
    )


def test_an_extractor_that_can_not_be_imported_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"partitioning_key 'no\.such:module': found No module named 'no'"):
        format_of(PROCESSOR, "no.such:module")


def test_an_unknown_store_type_is_refused() -> None:
    with pytest.raises(InvalidInput) as error:
        format_of("rocksdb")
    assert str(error.value) == (
        "store type: found 'rocksdb'; expected one of foreign-key-subscription, join-window, key-value, "
        "outer-join, "
        "processor, session, suppress, suppress-session, suppress-window, timestamped-key-value, "
        "timestamped-window, versioned, window. "
        "The DSL's aggregate/count/reduce without a window use timestamped-key-value."
    )


@pytest.mark.parametrize("store_type", REFUSED)
def test_a_store_that_can_not_be_moved_is_refused_with_reason_and_remedy(store_type: str) -> None:
    with pytest.raises(InvalidInput) as error:
        format_of(store_type)
    reason, remedy = REFUSED[store_type]
    assert (error.value.found, error.value.remedy) == (reason, remedy)
