"""The words of findings."""

from __future__ import annotations

import pytest
from kafka_rescale.core.verify.oracles import MEANING, Alignment, Entry, Oracle, differences, finding_of, printable


def entry(partition: int = 1, offset: int = 10, **changes: object) -> Entry:
    same = Entry(partition=partition, offset=offset, timestamp_ms=5, tombstone=False, value=(1, 2), headers=3)
    return same.model_copy(update=changes)


def test_every_oracle_says_what_it_means() -> None:
    assert set(MEANING) == set(Oracle)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"value": (1, 9)}, "value differs"),
        ({"timestamp_ms": 6}, "timestamp 5 in blue, 6 in green"),
        ({"headers": 0}, "headers differ"),
        ({"value": (9, 2), "headers": 0}, "value differs, headers differ"),
        ({"tombstone": True}, "a value in blue, deleted in green"),
    ],
)
def test_differences_name_the_parts_that_differ(changes: dict[str, object], text: str) -> None:
    assert differences(entry(), entry(**changes)) == text


def test_a_resurrected_key_is_told_apart_from_a_deleted_one() -> None:
    assert differences(entry(tombstone=True), entry()) == "deleted in blue, a value in green"


def test_a_finding_names_key_and_places() -> None:
    at = Alignment(key=b"customer-1", rank=1, source=1, target=5, blue=entry(), green=entry(5, 20, value=(0, 0)))

    found = finding_of(Oracle.STATE, "totals", at)

    assert (found.key, found.text) == (b"customer-1".hex(), "customer-1")
    assert (found.blue, found.green) == ("1@10", "5@20")
    assert (found.subject, found.detail) == ("totals", "value differs")


def test_an_older_record_is_named_by_its_distance_from_the_end() -> None:
    at = Alignment(key=b"k", rank=3, source=1, target=1, blue=entry(), green=entry(timestamp_ms=9))

    assert finding_of(Oracle.SEQUENCE, "totals", at).detail.startswith("record 3 from the end: timestamp 5")


@pytest.mark.parametrize(
    ("oracle", "changes", "detail"),
    [
        (Oracle.STATE, {"green": None}, "live in blue, missing in green"),
        (Oracle.TOMBSTONES, {"blue": None}, "live in green; blue has no record of the key"),
        (Oracle.PLACEMENT, {}, "in partition 5 instead of 4"),
        (Oracle.MISPLACED_IN_BLUE, {"source": -1}, "the key can't be of the store type"),
        (Oracle.ONE_PARTITION, {"green_neighbour": 2, "blue_neighbour": 1}, "partitions 5 and 2 of green"),
        (Oracle.RESIDUE, {}, "partition 5 of green, 1 of blue"),
        (
            Oracle.VERSIONS,
            {"rank": 2, "green": None},
            "record 2 from the end: the version of 5 is missing in green",
        ),
        (Oracle.VERSIONS, {"blue": None}, "record 1 from the end: the version of 5 is missing in blue"),
        (
            Oracle.VERSIONS,
            {"green": None, "blue": entry(tombstone=True)},
            "record 1 from the end: the deletion of 5 is missing in green",
        ),
        (
            Oracle.PRIMARY_PARTITION,
            {"primary": 2, "primary_home": 6},
            "names partition 2 of the left table instead of 6",
        ),
        (Oracle.DUPLICATES, {"rank": 2}, "record 2 from the end; blue's log is complete and has 1 of the key"),
    ],
)
def test_every_oracle_words_its_finding(oracle: Oracle, changes: dict[str, object], detail: str) -> None:
    at = Alignment(key=b"k", rank=1, source=0, target=4, blue=entry(), green=entry(5, 20))

    assert finding_of(oracle, "totals", at.model_copy(update=changes)).detail.startswith(detail)


@pytest.mark.parametrize(("key", "text"), [(b"caf\xc3\xa9", "café"), (b"\x00\x01", ""), (b"\xff\xfe", "")])
def test_a_key_is_shown_as_text_only_if_a_person_can_read_it(key: bytes, text: str) -> None:
    assert printable(key) == text
