"""The oracles of a stretch: histories that are copied and compacted at random, and mistakes in a copy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from kafka_rescale.core.verify.delta import MALFORMED, DeltaRules, Judged, Seen, judge
from kafka_rescale.core.verify.oracles import Oracle, finding_of

BLUE, GREEN = 2, 4
SINCE = {p: 40 for p in range(BLUE)}
"""Blue's records from here on have to be in green. Those before it may be in green."""


def home(key: bytes, count: int) -> int:
    return key[-1] % count


def seen(key: bytes, offset: int, value: bytes | None, *, count: int = BLUE, time: int = 5) -> Seen:
    return Seen(key, home(key, count), home(key, GREEN), offset, time, value, b"")


def history(seed: int, keys: int = 6, length: int = 200) -> list[Seen]:
    """Blue's records of a stretch, with deletions."""
    draw, ends = random.Random(seed), dict.fromkeys(range(BLUE), 0)
    made = []
    for number in range(length):
        key = b"key-%d" % draw.randrange(keys)
        value = None if draw.random() < 0.2 else b"%d" % number
        made.append(seen(key, ends[home(key, BLUE)], value, time=number))
        ends[home(key, BLUE)] += 1
    return made


def copied(blue: Sequence[Seen], begun: int = 30) -> list[Seen]:
    """Green's stretch: the copies of blue's records from a position before ``SINCE`` on."""
    ends = dict.fromkeys(range(GREEN), 1_000)
    made = []
    for record in blue:
        if record.offset >= begun:
            made.append(record._replace(partition=record.home, offset=ends[record.home]))
            ends[record.home] += 1
    return made


def compacted(log: Sequence[Seen], draw: random.Random) -> list[Seen]:
    """The records that compaction up to a random place leaves.

    Before that place, each key has only its newest record. From there on, all records are left.
    """
    last = {r.key: i for i, r in enumerate(log)}
    clean_to = draw.randrange(len(log))
    newest = {r.key: i for i, r in enumerate(log[:clean_to])}
    assert set(newest) <= set(last)
    return [r for i, r in enumerate(log) if i >= clean_to or newest[r.key] == i]


def oracles(found: Judged) -> set[Oracle]:
    return {oracle for oracle, _ in found.rows}


@pytest.mark.parametrize("seed", range(60))
def test_however_both_sides_are_compacted_a_right_copy_has_no_finding(seed: int) -> None:
    draw, blue = random.Random(seed), history(seed)
    green = copied(blue)

    found = judge(compacted(blue, draw), compacted(green, draw), DeltaRules(SINCE))

    assert found.rows == []
    assert found.live + found.deleted == len({r.key for r in green})


@pytest.mark.parametrize("seed", range(60))
def test_a_key_that_was_written_behind_the_fence_is_left_to_the_next_stretch(seed: int) -> None:
    draw, blue = random.Random(seed), history(seed)
    until = {p: draw.randrange(50, 90) for p in range(BLUE)}
    behind = {r.key for r in blue if r.offset >= until[r.partition]}
    green = [r for r in copied(blue) if r.key not in behind or draw.random() < 0.8]

    found = judge(blue, green, DeltaRules(SINCE, until))

    assert found.rows == []
    assert found.touched == len(behind)


Change = Callable[[list[Seen], int], None]


def dropped(green: list[Seen], at: int) -> None:
    del green[at]


def another_value(green: list[Seen], at: int) -> None:
    green[at] = green[at]._replace(value=b"another")


def another_time(green: list[Seen], at: int) -> None:
    green[at] = green[at]._replace(timestamp_ms=-1)


def another_header(green: list[Seen], at: int) -> None:
    green[at] = green[at]._replace(headers=b"h")


def elsewhere(green: list[Seen], at: int) -> None:
    green[at] = green[at]._replace(partition=(green[at].partition + 1) % GREEN)


def resurrected(green: list[Seen], at: int) -> None:
    green.append(green[at]._replace(value=b"alive again", offset=2_000))


def deleted(green: list[Seen], at: int) -> None:
    green.append(green[at]._replace(value=None, offset=2_000))


def invented(green: list[Seen], at: int) -> None:
    green.append(seen(b"nobody's-0", 2_000, b"value", count=GREEN))


def deletion_invented(green: list[Seen], at: int) -> None:
    green.append(seen(b"nobody's-0", 2_000, None, count=GREEN))


@pytest.mark.parametrize("last", [b"value", None], ids=["a value", "a deletion"])
@pytest.mark.parametrize(
    ("change", "live", "gone"),
    [
        (dropped, Oracle.STATE, Oracle.TOMBSTONES),
        (another_value, Oracle.STATE, Oracle.TOMBSTONES),
        (another_time, Oracle.STATE, Oracle.SEQUENCE),
        (another_header, Oracle.STATE, Oracle.SEQUENCE),
        (elsewhere, Oracle.PLACEMENT, Oracle.PLACEMENT),
        (resurrected, Oracle.STATE, Oracle.TOMBSTONES),
        (deleted, Oracle.STATE, Oracle.SEQUENCE),
        (invented, Oracle.TOMBSTONES, Oracle.TOMBSTONES),
        (deletion_invented, Oracle.STATE, Oracle.STATE),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_what_is_wrong_in_the_last_record_of_a_key_is_found(
    change: Change, live: Oracle, gone: Oracle, last: bytes | None
) -> None:
    blue = [seen(b"key-1", 50, b"before", time=1), seen(b"key-1", 51, last, time=2), seen(b"key-2", 50, b"x")]
    green = copied(blue)
    change(green, 1)

    found = judge(blue, green, DeltaRules(SINCE))

    assert (gone if last is None else live) in oracles(found)
    assert all(finding_of(oracle, "totals", at).detail for oracle, at in found.rows)


def test_a_lost_deletion_is_found_although_green_shows_nothing_of_the_key() -> None:
    found = judge([seen(b"key-1", 50, None)], [], DeltaRules(SINCE))

    ((oracle, at),) = found.rows
    assert (oracle, finding_of(oracle, "totals", at).detail) == (
        Oracle.TOMBSTONES,
        "deleted in blue, no deletion in green",
    )


def test_another_order_is_found() -> None:
    blue = [seen(b"key-1", 50 + n, b"%d" % n, time=n) for n in range(3)]
    green = copied(blue)
    green[0], green[1] = green[1]._replace(offset=green[0].offset), green[0]._replace(offset=green[1].offset)

    assert oracles(judge(blue, green, DeltaRules(SINCE))) == {Oracle.SEQUENCE}


def test_a_record_too_many_is_found_if_blue_has_lost_none() -> None:
    blue = [seen(b"key-1", 50, b"v")]
    green = [r._replace(offset=r.offset + n) for r in copied(blue) for n in range(2)]

    assert judge(blue, green, DeltaRules(SINCE)).rows == []
    assert oracles(judge(blue, green, DeltaRules(SINCE, complete=frozenset(range(BLUE))))) == {Oracle.DUPLICATES}


def test_a_version_that_compaction_had_to_keep_must_be_there() -> None:
    blue = [seen(b"key-1", 50 + n, b"%d" % n, time=n) for n in range(3)]
    green = copied(blue)

    for one, other in ((blue, green[1:]), (blue[1:], green)):
        assert judge(one, other, DeltaRules(SINCE)).rows == []
        assert oracles(judge(one, other, DeltaRules(SINCE, versions_since_ms=0))) == {Oracle.VERSIONS}


def test_a_version_may_be_in_no_stretch_if_its_key_is_written_on() -> None:
    """So versioned stores are compared once more when blue is stopped."""
    blue = [seen(b"key-1", 50 + n, b"%d" % n, time=n) for n in range(2)]
    lost, since = copied(blue)[1:], {p: 51 for p in range(BLUE)}
    first, last = DeltaRules(SINCE, until=since, versions_since_ms=0), DeltaRules(since, versions_since_ms=0)

    assert judge(blue, lost, first).rows == judge(blue[1:], lost, last).rows == []
    assert oracles(judge(blue, lost, DeltaRules(SINCE, versions_since_ms=0))) == {Oracle.VERSIONS}


def test_a_key_in_two_partitions_is_found() -> None:
    blue = [seen(b"key-1", 50, b"v"), seen(b"key-1", 50, b"w")._replace(partition=0)]

    assert Oracle.ONE_PARTITION in oracles(judge(blue, [], DeltaRules(SINCE)))


def test_a_partition_that_its_key_can_not_have_come_from_is_found() -> None:
    blue = [seen(b"key-1", 50, b"v")]
    green = [r._replace(partition=2, home=2) for r in copied(blue)]

    assert oracles(judge(blue, green, DeltaRules(SINCE, modulus=BLUE))) == {Oracle.RESIDUE}


def test_a_key_that_can_not_be_of_the_store_is_misplaced_wherever_it_is() -> None:
    ((oracle, at),) = judge([], [seen(b"key-1", 50, b"v")._replace(home=MALFORMED)], DeltaRules(SINCE)).rows[:1]

    assert (oracle, finding_of(oracle, "s", at).detail) == (Oracle.PLACEMENT, "the key can't be of the store type")


def test_what_retention_has_deleted_on_one_side_is_no_finding() -> None:
    old = [seen(b"key-1", 50, b"v", time=5)]
    rules = DeltaRules(SINCE, expires_before_ms=6, trimmed_blue=True, trimmed_green=True)

    assert judge(old, [], rules).rows == judge([], old, rules).rows == []
    for kept in (replace(rules, trimmed_blue=False, trimmed_green=False), replace(rules, expires_before_ms=5)):
        assert oracles(judge(old, [], kept)) == {Oracle.STATE}
        assert oracles(judge([], old, kept)) == {Oracle.TOMBSTONES}


def test_the_violations_of_some_keys_can_be_left_out() -> None:
    found = judge([seen(b"key-1", 50, b"v"), seen(b"key-2", 50, b"v")], [], DeltaRules(SINCE))

    left = found.without([b"key-1"])

    assert {at.key for _, at in left.rows} == set(left.places) == {b"key-2"}
    assert (left.blue_records, left.touched) == (2, 0)
