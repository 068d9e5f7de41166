"""From which time on a cleaned log still has the exact state, checked with a model of the log cleaner."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.record_batches import Batch, batches_of, ends_within_batch
from kafka_rescale.core.formats.record_limits import UNLIMITED
from kafka_rescale.core.snapshots.exactness import coverage_of, exact_from_ms
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule, rule_of

from tests.unit.snapshots.test_snapshot_rows import log, state, tail_of, values

GRACE = 5
RULE = SnapshotRule(0, GRACE)
LATER = 10**6


def batched(entries: Sequence[Entry], size: int, end: int, newest: int = 0) -> list[Batch]:
    """The batches of a log. Records were appended in batches of equal size, and some records are gone.

    :param newest: where its newest segment begins. Everything before it is one segment.
    """
    batches: list[Batch] = []
    firsts = sorted({*range(0, end, size), *([newest] if newest < end else [])})
    for first, following in pairwise([*firsts, end]):
        there = [e for e in entries if first <= e.offset < following]
        if there:
            at_ms = max(e.timestamp_ms for e in there)
            opens = not batches or batches[-1].first < newest <= first
            batches.append(Batch(first, following - 1, len(there), at_ms, opens_segment=opens))
    return batches


def cleaned(
    entries: Sequence[Entry], before: int, *, swapped: int | None = None, without_tombstones: bool = False
) -> list[Entry]:
    """The records that the cleaner leaves after it has looked at everything before an offset.

    :param swapped: it was cut short after it had replaced everything before this offset.
    """
    last = {e.key: e.offset for e in entries if e.offset < before}
    behind = before if swapped is None else min(swapped, before)
    return [
        e
        for e in entries
        if e.offset >= behind or (last[e.key] == e.offset and not (without_tombstones and e.value is None))
    ]


def exact_from(
    left: Sequence[Entry],
    end: int,
    *,
    newest: int = 0,
    begin: int = 0,
    size: int = 1,
    rule: SnapshotRule = RULE,
) -> int | None:
    coverage = coverage_of(batched(left, size, end, newest), 0, end, begin)
    return exact_from_ms(coverage, left[0].timestamp_ms if left else None, rule)


class TestWhole:
    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    def test_a_log_without_holes_tells_every_day(self, size: int) -> None:
        entries = log(("a", 1, "x"), ("a", 2, "y"), ("b", 3, "z"))
        assert exact_from(entries, 3, size=size) == 0

    def test_transaction_markers_are_no_holes(self) -> None:
        batches = Batch(0, 1, 2, 5), Batch(2, 2, 1, 9_999, is_control=True), Batch(3, 3, 1, 6)
        assert coverage_of(batches, 0, 4, 0).is_whole

    def test_an_empty_range_is_whole(self) -> None:
        assert coverage_of([], 7, 7, 0).is_whole

    def test_batches_around_the_range_do_not_matter(self) -> None:
        batches = Batch(0, 0, 1, 1), Batch(2, 3, 2, 2), Batch(4, 6, 3, 3), Batch(9, 9, 1, 4)
        assert coverage_of(batches, 3, 5, 0).is_whole

    @pytest.mark.parametrize(
        "batches",
        [
            pytest.param([Batch(1, 3, 3, 1)], id="a batch at the beginning is gone"),
            pytest.param([Batch(0, 1, 2, 1), Batch(3, 3, 1, 1)], id="a batch is gone"),
            pytest.param([Batch(0, 3, 3, 1)], id="a record of a batch is gone"),
            pytest.param([Batch(0, 2, 3, 1)], id="the end is gone"),
            pytest.param([], id="everything is gone"),
        ],
    )
    def test_whatever_is_missing_is_seen(self, batches: list[Batch]) -> None:
        assert not coverage_of(batches, 0, 4, 0).is_whole


class TestCleaned:
    ENTRIES = log(("a", 10, "1"), ("b", 20, "1"), ("b", 30, "2"), ("a", 40, "2"), ("a", 50, "3"), ("c", 60, "1"))

    def test_the_days_before_the_cleaned_part_ends_are_refused(self) -> None:
        """Offset 0 is superseded at 3. As of 35, `a` was 1, but the log does not have this any more."""
        left = cleaned(self.ENTRIES, before=4)
        assert [e.offset for e in left] == [2, 3, 4, 5]
        assert exact_from(left, 6, newest=4) == 50 + GRACE + 1

    def test_a_rule_that_looks_at_holes_alone_would_be_wrong(self) -> None:
        """The last hole is at offset 1, at time 20. But the remaining records do not give the state as of 35."""
        left = cleaned(self.ENTRIES, before=4)
        as_of_35 = SnapshotRule(35)
        assert values(state([], tail_of(left, as_of_35))) == {"b": "2"}
        assert values(state([], tail_of(self.ENTRIES, as_of_35))) == {"a": "1", "b": "2"}

    def test_a_pass_that_was_cut_short_is_not_told_by_keys_that_come_again(self) -> None:
        """Only the first two offsets were replaced. `b` is there twice, and `a` was superseded after it."""
        entries = log(
            ("a", 10, "1"), ("x", 11, "1"), ("b", 20, "1"), ("b", 21, "2"), ("a", 150, "2"), ("c", 160, "1")
        )
        left = cleaned(entries, before=5, swapped=2)
        assert [e.offset for e in left] == [1, 2, 3, 4, 5]
        as_of_100 = SnapshotRule(100)
        assert values(state([], tail_of(left, as_of_100))) != values(state([], tail_of(entries, as_of_100)))
        assert exact_from(left, 6, newest=5) == 160 + GRACE + 1

    def test_a_segment_that_has_holes_is_not_the_newest(self) -> None:
        left = cleaned(self.ENTRIES, before=5)
        assert [e.offset for e in left] == [2, 4, 5]
        assert exact_from(left, 6, newest=0) == 60 + GRACE + 1

    def test_what_was_appended_meanwhile_shows_how_far_cleaning_may_have_come(self) -> None:
        """The range was chosen while the third batch was in the newest segment. It may have been cleaned since."""
        seen = [Batch(1, 1, 1, 10, opens_segment=True), Batch(2, 2, 1, 20), Batch(3, 3, 1, 99, opens_segment=True)]
        coverage = coverage_of(seen, 0, 3, 0)
        assert exact_from_ms(coverage, 10, RULE) == 99 + GRACE + 1

    def test_who_knows_since_when_records_are_kept_has_more_days(self) -> None:
        coverage = coverage_of(batched(cleaned(self.ENTRIES, before=5), 1, 6, 5), 0, 6, 0)
        assert exact_from_ms(coverage, 20, RULE) == 60 + GRACE + 1
        assert exact_from_ms(coverage, 20, RULE, lagging_ms=33) == 33 + GRACE + 1
        assert exact_from_ms(coverage, 20, RULE, lagging_ms=99) == 60 + GRACE + 1

    def test_markers_do_not_count(self) -> None:
        """Markers have the time at which they were written, while records may have times of years ago."""
        seen = [
            Batch(1, 1, 1, 10, opens_segment=True),
            Batch(2, 2, 1, 9_999, is_control=True),
            Batch(3, 3, 1, 9_999, is_control=True, opens_segment=True),
            Batch(4, 4, 1, 30),
            Batch(5, 5, 1, 40),
        ]
        assert exact_from_ms(coverage_of(seen, 0, 7, 0), 10, RULE) is None, "the end is gone"
        assert exact_from_ms(coverage_of(seen, 0, 6, 0), 10, RULE) == 30 + GRACE + 1

    def test_a_versioned_store_needs_its_whole_history_behind_the_cleaned_part(self) -> None:
        left = cleaned(self.ENTRIES, before=4)
        assert exact_from(left, 6, newest=4, rule=replace(RULE, versions_ms=100)) == 50 + GRACE + 100 + 1

    def test_while_an_expansion_holds_compaction_the_history_has_no_known_bound(self) -> None:
        """The compaction lag is 2^63 - 1 then, and the lag of before is not known here."""
        topic = TopicDescription("t", 1, 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(UNLIMITED)})
        rule = rule_of(topic, format_of("versioned"), end_ms=0, grace_ms=GRACE)
        assert exact_from(self.ENTRIES, 6, newest=4, rule=rule) == 0, "nothing was removed"
        assert exact_from(cleaned(self.ENTRIES, before=4), 6, newest=4, rule=rule) is None

    def test_a_log_of_which_nothing_is_left_tells_no_day(self) -> None:
        assert exact_from([], 6) is None

    @given(
        st.lists(
            st.tuples(
                st.sampled_from("abc"), st.integers(0, 40), st.integers(0, GRACE), st.sampled_from(["x", None])
            ),
            min_size=1,
            max_size=30,
        ),
        st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 30), st.booleans()), max_size=3),
        st.integers(0, 30),
        st.integers(1, 4),
        st.integers(0, 60),
    )
    def test_a_state_that_is_called_exact_is_that_of_the_log_before_it_was_cleaned(
        self,
        drawn: list[tuple[str, int, int, str | None]],
        passes: list[tuple[int, int | None, bool]],
        newest: int,
        size: int,
        end_ms: int,
    ) -> None:
        in_order = zip(drawn, sorted(at for _, at, _, _ in drawn), strict=True)
        entries = log(
            *((key, at - late, f"{value}{at}" if value else None) for (key, _, late, value), at in in_order)
        )
        left = entries
        # Brokers make a segment when they append to it. So the newest segment has a record, and no pass reads it.
        newest = min(newest, len(entries) - 1)
        for before, swapped, without_tombstones in passes:
            left = cleaned(left, min(before, newest), swapped=swapped, without_tombstones=without_tombstones)
        moment = exact_from(left, len(entries), newest=newest, size=size)
        rule = SnapshotRule(end_ms, LATER)
        if moment is not None and end_ms >= moment:
            assert state([], tail_of(left, rule)) == state([], tail_of(entries, rule))


class TestExpiring:
    @pytest.mark.parametrize(
        ("batch", "is_expiring"),
        [
            (Batch(3, 3, 1, 1, has_delete_horizon=True), True),
            (Batch(3, 3, 1, 1), False),
            (Batch(3, 3, 1, 1, is_control=True, has_delete_horizon=True), False),
            (Batch(9, 9, 1, 1, has_delete_horizon=True), False),
        ],
    )
    def test_deletions_that_may_go_at_any_time_are_seen(self, batch: Batch, is_expiring: bool) -> None:
        assert coverage_of([Batch(0, 2, 3, 1), batch], 0, 4, 0).is_expiring is is_expiring


class TestDeleted:
    def test_a_compacted_log_without_its_beginning_tells_no_day(self) -> None:
        assert exact_from(log(("a", 1, "x"), ("b", 2, "y"))[1:], 2, begin=1) is None

    def test_a_log_that_deletes_by_age_does_as_soon_as_nothing_deleted_is_kept(self) -> None:
        left = log(("a", 10, "x"), ("b", 20, "y"), ("b", 30, "z"))[1:]
        assert exact_from(left, 3, begin=1, rule=replace(RULE, kept_ms=100)) == 20 + GRACE + 100 + 1

    def test_a_copy_that_was_begun_anew_begins_where_it_begins(self) -> None:
        assert coverage_of([Batch(5, 5, 1, 1)], 5, 6, begin=5).is_whole


class TestHeaders:
    HEADER = struct.Struct(">qiibIhiqqqhii")

    def encoded(self, first: int, delta: int, count: int, *, attributes: int = 0, magic: int = 2) -> bytes:
        payload = b"p" * 10
        length = self.HEADER.size + len(payload) - 12
        return self.HEADER.pack(first, length, 0, magic, 0, attributes, delta, 7, 8, -1, -1, -1, count) + payload

    def test_batches_are_told_by_their_headers(self) -> None:
        data = self.encoded(3, 4, 5) + self.encoded(8, 0, 1, attributes=0x30)
        data += self.encoded(9, 0, 1, attributes=0x40)
        assert list(batches_of(data)) == [
            Batch(3, 7, 5, 8),
            Batch(8, 8, 1, 8, is_control=True, is_transactional=True),
            Batch(9, 9, 1, 8, has_delete_horizon=True),
        ]

    def test_a_batch_that_is_cut_off_is_left_for_the_next_answer(self) -> None:
        data = self.encoded(3, 4, 5) + self.encoded(8, 0, 1)
        assert len(list(batches_of(data[:-1]))) == 1
        assert list(batches_of(data[:40])) == []

    def test_an_answer_that_ends_with_a_batch_has_come_to_the_end_of_its_segment(self) -> None:
        data = self.encoded(3, 4, 5) + self.encoded(8, 0, 1)
        assert not ends_within_batch(data)
        assert not ends_within_batch(b"")
        assert all(ends_within_batch(data[:-n]) for n in range(1, len(self.encoded(8, 0, 1))))

    def test_an_older_message_format_is_refused(self) -> None:
        with pytest.raises(UnsafeState, match="message format 1"):
            list(batches_of(self.encoded(0, 0, 1, magic=1)))
