"""The state at the end of a day: what belongs to it. A chain of days gives the same as the whole log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule, retained, rule_of
from kafka_rescale.core.snapshots.tail import Tail, survivors

DAY = 100
GRACE = 30


def tail_of(entries: Iterable[Entry], rule: SnapshotRule, ahead: Iterable[Entry] = ()) -> Tail:
    tail = Tail(rule)
    tail.start_with(ahead)
    for entry in entries:
        if not tail.add(entry):
            break
    return tail


def state(base: Sequence[Entry], tail: Tail) -> list[Entry]:
    """Do with lists what the Arrow code does."""
    keep = survivors([e.key for e in base], [e.timestamp_ms for e in base], tail)
    rows = [*(e for e, kept in zip(base, keep, strict=True) if kept), *tail.latest.values()]
    rows.sort(key=lambda e: (e.key, e.timestamp_ms))
    columns = [e.key for e in rows], [e.timestamp_ms for e in rows], [e.value is None for e in rows]
    return [e for e, kept in zip(rows, retained(*columns, tail.rule), strict=True) if kept]


def position(tail: Tail, end: int) -> int:
    return end if tail.position is None else tail.position


def log(*records: tuple[str, int, str | None]) -> list[Entry]:
    return [
        Entry(key.encode(), None if value is None else value.encode(), at, offset)
        for offset, (key, at, value) in enumerate(records)
    ]


def values(entries: Iterable[Entry]) -> dict[str, str]:
    return {e.key.decode(): (e.value or b"").decode() for e in entries}


class TestOneDay:
    def test_the_last_record_before_the_end_counts_by_the_order_of_the_log(self) -> None:
        records = log(
            ("a", 10, "first"), ("a", 99, "second"), ("b", 5, "b"), ("a", 50, "third, with an older time")
        )
        assert values(state([], tail_of(records, SnapshotRule(DAY)))) == {
            "a": "third, with an older time",
            "b": "b",
        }

    def test_a_record_at_the_end_belongs_to_the_next_day(self) -> None:
        tail = tail_of(log(("a", 99, "in"), ("a", 100, "out")), SnapshotRule(DAY, GRACE))
        assert values(state([], tail)) == {"a": "in"}
        assert tail.position == 1
        assert tail.closed_at is None

    def test_records_out_of_order_belong_to_it_within_the_grace(self) -> None:
        records = log(("a", 101, "early"), ("b", 99, "late"), ("c", 130, "closes"), ("d", 98, "too late"))
        tail = tail_of(records, SnapshotRule(DAY, GRACE, closers=1))
        assert values(state([], tail)) == {"b": "late"}
        assert (tail.closed_at, tail.position) == (2, 0)

    def test_without_grace_the_first_record_of_the_next_day_ends_it(self) -> None:
        tail = tail_of(log(("a", 101, "early"), ("b", 99, "late")), SnapshotRule(DAY, closers=1))
        assert (tail.closed_at, tail.latest) == (0, {})

    def test_a_deleted_key_is_not_there(self) -> None:
        records = log(("a", 1, "x"), ("b", 2, "y"), ("a", 3, None))
        assert values(state([], tail_of(records, SnapshotRule(DAY)))) == {"b": "y"}

    def test_a_key_deleted_the_day_after_is_there(self) -> None:
        records = log(("a", 1, "x"), ("a", 101, None))
        assert values(state([], tail_of(records, SnapshotRule(DAY, GRACE)))) == {"a": "x"}

    def test_entries_that_retention_may_have_deleted_are_not_there(self) -> None:
        records = log(("a", 39, "old"), ("b", 40, "kept"))
        assert values(state([], tail_of(records, SnapshotRule(DAY, kept_ms=60)))) == {"b": "kept"}


class TestDatedAhead:
    """A record with a time far ahead, as of a device whose clock is wrong."""

    RULE = SnapshotRule(DAY, GRACE)

    def test_it_does_not_end_the_day_and_is_left_out(self) -> None:
        records = log(("a", 10, "x"), ("f", 9_999, "ahead"), ("b", 20, "y"), ("a", 30, "z"), ("c", 101, "next"))
        tail = tail_of(records, self.RULE)
        assert values(state([], tail)) == {"a": "z", "b": "y"}
        assert (tail.closed_at, tail.resume_at, tail.position) == (None, 4, 1)
        assert [e.offset for e in tail.ahead] == [1]

    def test_the_day_ends_with_the_first_of_many_that_no_record_of_the_day_follows(self) -> None:
        rule = SnapshotRule(DAY, GRACE, closers=3)
        later = [("n", 200 + n, "next") for n in range(5)]
        records = log(("f", 9_999, "ahead"), ("g", 9_999, "ahead"), ("a", 10, "x"), *later, ("a", 20, "too late"))
        tail = tail_of(records, rule)
        assert (tail.closed_at, tail.resume_at, tail.records) == (3, 3, 3)
        assert values(state([], tail)) == {"a": "x"}

    def test_if_the_log_ends_before_it_ends_the_day_as_far_as_it_is_known(self) -> None:
        tail = tail_of(log(("a", 10, "x"), ("f", 9_999, "ahead"), ("n", 105, "next")), self.RULE)
        assert (tail.closed_at, tail.resume_at, tail.position, tail.records) == (1, 1, 1, 1)

    def test_it_counts_from_its_own_day_on_unless_its_key_came_again(self) -> None:
        records = log(("f", 350, "f"), ("g", 350, "g"), ("a", 10, "x"), ("g", 20, "again"), ("a", 120, "y"))
        today = tail_of(records, self.RULE)
        assert [e.key for e in today.ahead] == [b"f"]
        rows = state([], today)
        assert values(rows) == {"a": "x", "g": "again"}
        later = tail_of(records[today.resume_at :], replace(self.RULE, end_ms=4 * DAY), today.ahead)
        assert values(state(rows, later)) == {"a": "y", "f": "f", "g": "again"}

    def test_more_than_a_manifest_keeps_are_read_again(self) -> None:
        big = "v" * 1_000
        records = log(*((f"f{n}", 9_999, big) for n in range(5)), ("a", 10, "x"))
        tail = tail_of(records, replace(self.RULE, ahead_bytes=3_000))
        assert ([e.offset for e in tail.ahead], tail.resume_at, tail.position) == ([0, 1], 2, 0)


class TestVersions:
    RULE = SnapshotRule(DAY, versions_ms=50)

    def test_all_versions_of_the_history_and_the_one_that_was_valid_at_its_beginning(self) -> None:
        records = log(("a", 10, "gone"), ("a", 20, "valid at 50"), ("a", 60, "x"), ("a", 70, None), ("a", 80, "y"))
        assert [(e.timestamp_ms, e.value) for e in state([], tail_of(records, self.RULE))] == [
            (20, b"valid at 50"),
            (60, b"x"),
            (70, None),
            (80, b"y"),
        ]

    def test_a_version_at_the_beginning_of_the_history_is_the_valid_one(self) -> None:
        assert [e.timestamp_ms for e in state([], tail_of(log(("a", 10, "x"), ("a", 50, "y")), self.RULE))] == [50]

    def test_a_deletion_before_the_history_leaves_nothing(self) -> None:
        found = state([], tail_of(log(("a", 10, "x"), ("a", 20, None), ("b", 90, "y")), self.RULE))
        assert [e.key for e in found] == [b"b"]

    def test_a_version_that_comes_late_behind_a_deletion_of_a_quiet_partition_does_not_come_back(self) -> None:
        records = log(("a", 50, None), ("a", 49, "late"))
        today = state([], tail_of(records[:1], self.RULE))
        assert [(e.timestamp_ms, e.value) for e in today] == [(50, None)]
        tomorrow = replace(self.RULE, end_ms=2 * DAY)
        assert state(today, tail_of(records[1:], tomorrow)) == state([], tail_of(records, tomorrow))

    def test_a_version_that_comes_late_takes_its_place_and_another_of_its_time_replaces_it(self) -> None:
        records = log(("a", 80, "newest"), ("a", 60, "late"), ("a", 60, "corrected"))
        found = state([], tail_of(records, self.RULE))
        assert [(e.timestamp_ms, e.value) for e in found] == [(60, b"corrected"), (80, b"newest")]


def with_ahead(records: list[Entry], ahead: list[tuple[int, str, int, str]]) -> list[Entry]:
    """Put records among others, each so far ahead of the one before it."""
    found = list(records)
    for place, key, by, value in ahead:
        at = min(place, len(found))
        before_ms = found[at - 1].timestamp_ms if at else 0
        found.insert(at, Entry(key.encode(), None if value == "-" else value.encode(), before_ms + by, 0))
    return [entry._replace(offset=n) for n, entry in enumerate(found)]


DRAWN = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 5 * DAY), st.sampled_from(["x", "y", None])), max_size=60
)
RECORDS = DRAWN.map(lambda records: log(*records))
FEW = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 12).map(lambda n: 20 * n), st.sampled_from(["x", None, None])),
    max_size=6,
)
"""Mostly deletions, and few keys: so late versions meet the deletions that follow them."""
NEARLY_IN_ORDER = st.tuples(DRAWN | FEW, st.randoms()).map(
    lambda drawn: log(
        *(
            (key, at - drawn[1].randint(0, GRACE), value)
            for (key, _, value), at in zip(drawn[0], sorted(at for _, at, _ in drawn[0]), strict=True)
        )
    )
)
DATED_AHEAD = st.tuples(
    NEARLY_IN_ORDER,
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from("abcdf"), st.integers(DAY, 9 * DAY), st.sampled_from("F-")),
        max_size=4,
    ),
).map(lambda drawn: with_ahead(*drawn))
"""In order within the grace, but a few records have times far ahead."""
CLOSED_BY = st.sampled_from([1, 2, 3, 1_000])
RULES = st.tuples(
    st.sampled_from(
        [
            SnapshotRule(0, grace_ms=0),
            SnapshotRule(0, grace_ms=GRACE),
            SnapshotRule(0, grace_ms=10 * DAY),
            SnapshotRule(0, grace_ms=GRACE, kept_ms=150),
        ]
    ),
    CLOSED_BY,
).map(lambda drawn: replace(drawn[0], closers=drawn[1]))
BUILT = st.sets(st.integers(1, 5))
LOOKED = st.lists(st.integers(0, 60), min_size=5, max_size=5)
"""The end of the log when each day was built."""


def assert_chain_is_replay(records: list[Entry], rule: SnapshotRule, looked: list[int], built: set[int]) -> None:
    base: list[Entry] = []
    ahead: list[Entry] = []
    start = reached_before = 0
    for day, reached in zip(sorted(built), sorted(looked), strict=False):
        of_day = replace(rule, end_ms=day * DAY)
        there = records[: max(reached, reached_before)]
        tail = tail_of(there[start:], of_day, ahead)
        base = state(base, tail)
        reached_before = len(there) if tail.closed_at is None else tail.closed_at
        ahead, start = tail.ahead, reached_before if tail.resume_at is None else tail.resume_at
        assert base == state([], tail_of(there, of_day))
        # A day that is built again goes up to the same end, whatever is known of its records by then.
        assert base == state([], tail_of(there[:reached_before], replace(of_day, grace_ms=100 * DAY)))


class TestChain:
    @given(RECORDS, RULES, LOOKED, BUILT)
    def test_a_chain_of_days_is_what_the_whole_log_says_in_whatever_order_its_records_are(
        self, records: list[Entry], rule: SnapshotRule, looked: list[int], built: set[int]
    ) -> None:
        assert_chain_is_replay(records, rule, looked, built)

    @given(NEARLY_IN_ORDER, LOOKED, BUILT)
    def test_a_chain_of_versions_is_so_if_they_are_in_order_within_the_grace(
        self, records: list[Entry], looked: list[int], built: set[int]
    ) -> None:
        assert_chain_is_replay(records, SnapshotRule(0, GRACE, versions_ms=70), looked, built)

    @given(DATED_AHEAD, RULES, LOOKED, BUILT)
    def test_a_chain_is_so_if_some_records_are_dated_ahead(
        self, records: list[Entry], rule: SnapshotRule, looked: list[int], built: set[int]
    ) -> None:
        assert_chain_is_replay(records, rule, looked, built)

    @given(NEARLY_IN_ORDER, st.sets(st.integers(0, 60), max_size=3))
    def test_one_record_a_year_ahead_changes_no_day_before(self, records: list[Entry], places: set[int]) -> None:
        """Fewer than ``CLOSERS``, at any place. The other records give the same days without them."""
        with_them = with_ahead(records, [(place, "f", 365 * DAY, "F") for place in sorted(places)])
        base: list[Entry] = []
        ahead: list[Entry] = []
        start = 0
        for day in range(1, 6):
            rule = SnapshotRule(day * DAY, GRACE)
            tail = tail_of(with_them[start:], rule, ahead)
            base, ahead = state(base, tail), tail.ahead
            start = len(with_them) if tail.resume_at is None else tail.resume_at
            assert [e[:3] for e in base] == [e[:3] for e in state([], tail_of(records, rule))]

    @given(RECORDS | DATED_AHEAD, st.integers(1, 4), CLOSED_BY)
    def test_replaying_from_a_days_position_leads_to_the_newest_state(
        self, records: list[Entry], day: int, closers: int
    ) -> None:
        rule = SnapshotRule(day * DAY, GRACE, closers=closers)
        tail = tail_of(records, rule)
        now = SnapshotRule(1_000 * DAY)
        resumed = tail_of(records[position(tail, len(records)) :], now)
        assert state(state([], tail), resumed) == state([], tail_of(records, now))


DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("store_type", "configs", "kept_ms", "versions_ms"),
    [
        ("timestamped-key-value", {"cleanup.policy": "compact"}, None, None),
        # Its input is its changelog. Log retention deletes the records, but the store keeps the rows.
        (
            "timestamped-key-value",
            {"cleanup.policy": "compact,delete", "retention.ms": str(7 * DAY_MS)},
            None,
            None,
        ),
        ("window", {"cleanup.policy": "compact,delete", "retention.ms": str(3 * DAY_MS)}, 2 * DAY_MS, None),
        ("window", {"cleanup.policy": "compact,delete", "retention.ms": "-1"}, None, None),
        ("join-window", {"cleanup.policy": "delete", "retention.ms": "5000"}, 5000, None),
        ("versioned", {"cleanup.policy": "compact", "min.compaction.lag.ms": "7000"}, None, 7000),
    ],
)
def test_the_rule_follows_the_changelogs_configuration(
    store_type: str, configs: dict[str, str], kept_ms: int | None, versions_ms: int | None
) -> None:
    rule = rule_of(TopicDescription("t", 1, 1, configs), format_of(store_type), end_ms=9, grace_ms=3)
    assert rule == SnapshotRule(9, 3, kept_ms, versions_ms)
