"""Versions of a suppress buffer's values, compared with bytes of Kafka Streams 2.4 and with older layouts."""

from __future__ import annotations

import pytest
from kafka_rescale.core.formats.suppress_buffer import version_of

V3 = [
    "0000000000000000000000000000000000000005746F70696300000000FFFFFFFFFFFFFFFFFFFFFFFF00000006646F6F6D6564"
    "0000000000000000",
    "0000000000000001000000000000000000000005746F70696300000000FFFFFFFFFFFFFFFFFFFFFFFF0000000471776572"
    "0000000000000002",
    "0000000000000002000000000000000000000005746F70696300000000FFFFFFFF0000000870726576696F75730000000749474E4F524544"
    "00000005336F34696D0000000000000001",
    "0000000000000003000000000000000000000005746F70696300000000FFFFFFFF0000000870726576696F757300000005336F34696D"
    "000000046E6578740000000000000001",
]
"""``TimeOrderedKeyValueBufferTest.shouldRestoreV3Format``: todelete, asdf, zxcv twice."""

CONTEXT = bytes.fromhex(V3[0])[: 16 + 4 + 5 + 4 + 4]
TIME = (7).to_bytes(8, "big")
NULL = b"\xff" * 4
CHANGE = NULL + b"\0\0\0\x03new"
LAYOUTS = {
    0: TIME + CHANGE,
    1: TIME + CONTEXT + len(CHANGE).to_bytes(4, "big") + CHANGE,
    2: CONTEXT + len(CHANGE).to_bytes(4, "big") + CHANGE + b"\0\0\0\x05prior" + TIME,
    3: CONTEXT + NULL + b"\xff\xff\xff\xfe" + b"\0\0\0\x03new" + TIME,
}


def labelled(number: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record with version ``number``. Version 0 has no headers."""
    return (("v", bytes([number])),) if number else ()


@pytest.mark.parametrize("value", V3)
def test_what_kafka_streams_2_4_wrote_is_version_3(value: str) -> None:
    assert version_of(labelled(3), bytes.fromhex(value)) == 3


@pytest.mark.parametrize("value", V3)
def test_the_same_under_the_number_2_is_still_version_3(value: str) -> None:
    assert version_of(labelled(2), bytes.fromhex(value)) == 3


@pytest.mark.parametrize("version", LAYOUTS)
def test_every_version_is_known_by_its_number_and_its_layout(version: int) -> None:
    assert version_of(labelled(version), LAYOUTS[version]) == version


def test_record_headers_in_the_context_are_walked_through() -> None:
    headers = b"\0\0\0\x02" + b"\0\0\0\x01a" + b"\0\0\0\x01b" + b"\0\0\0\x01c" + NULL
    assert version_of(labelled(3), CONTEXT[:-4] + headers + LAYOUTS[3][len(CONTEXT) :]) == 3


@pytest.mark.parametrize("version", LAYOUTS)
@pytest.mark.parametrize("spoil", [lambda v: v + b"\0", lambda v: v[:-1], lambda v: b""])
def test_a_byte_more_or_less_is_no_value_of_a_buffer(version: int, spoil: object) -> None:
    assert version_of(labelled(version), spoil(LAYOUTS[version])) is None  # type: ignore[operator]


def test_another_number_is_no_version() -> None:
    assert version_of((("v", b"\x04"),), LAYOUTS[3]) is None
    assert version_of((("v", None),), LAYOUTS[0]) is None


def test_headers_of_the_header_format_beside_the_number_do_not_matter() -> None:
    assert version_of((*labelled(3), ("vh.old", b"\0")), LAYOUTS[3]) == 3
