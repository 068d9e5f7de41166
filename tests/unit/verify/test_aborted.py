"""What green has aborted: what came again, what is lost, and what the log can't tell."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from kafka_rescale.airflow.spark.job_results import _findings
from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Captured, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.record_batches import Batch, batches_of
from kafka_rescale.core.verify.aborted import Aborted, AbortedRecord, AbortedReport, told_aborted
from kafka_rescale.core.verify.misrouted import Span
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.report_text import render
from kafka_rescale.core.verify.transactions import Transactions, Written, aborted_report
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.verify.accept import _looked_at

from tests.unit.verify.test_verification import TestWhatAReportIsAbout, report, store_report

EVERYTHING = {0: 1_000, 1: 1_000}


def data(first: int, last: int, producer: int) -> Batch:
    return Batch(first, last, last - first + 1, 0, producer=producer, is_transactional=True)


def end(at: int, producer: int, *, abort: bool) -> Batch:
    return Batch(at, at, 1, 0, is_control=True, producer=producer, is_transactional=True, is_abort=abort)


def log_of(*batches: Batch) -> Transactions:
    log = Transactions(0)
    for batch in batches:
        log.take(batch)
    return log


def found_in(
    log: Transactions,
    records: Iterable[Written],
    judged: dict[int, int] = EVERYTHING,
    *,
    is_changelog: bool = False,
) -> AbortedReport:
    return aborted_report("out", {0: log}, records, judged, is_changelog=is_changelog)


def record(offset: int, key: str | None, timestamp: int, value: bytes = b"v") -> Written:
    return Written(0, offset, timestamp, None if key is None else key.encode(), value)


TWO_PRODUCERS = log_of(data(0, 1, 7), data(2, 3, 8), end(4, 8, abort=False), end(5, 7, abort=True))


class TestTransactions:
    def test_a_marker_ends_the_transaction_of_its_producer_only(self) -> None:
        assert TWO_PRODUCERS.aborted == [(7, [(0, 1)])]
        assert TWO_PRODUCERS.position == 6
        assert TWO_PRODUCERS.open_since is None

    def test_a_transaction_without_a_marker_is_open(self) -> None:
        log = log_of(data(0, 1, 7), data(2, 3, 8), end(4, 8, abort=True))
        assert (log.open_since, log.first_aborted) == (0, 2)
        log.take(end(5, 7, abort=False))
        assert (log.open_since, log.aborted) == (None, [(8, [(2, 3)])])

    def test_the_transactions_of_one_producer_are_told_apart(self) -> None:
        log = log_of(data(0, 0, 7), end(1, 7, abort=True), data(2, 2, 7), end(3, 7, abort=False))
        assert [log.uncommitted().transaction(offset) for offset in range(4)] == [0, None, None, None]

    def test_records_outside_of_transactions_are_committed(self) -> None:
        log = log_of(Batch(0, 4, 5, 0))
        assert (log.are_used, log.uncommitted().transaction(3), log.position) == (False, None, 5)

    def test_a_marker_of_a_transaction_that_began_before_tells_nothing(self) -> None:
        assert log_of(end(9, 7, abort=True)).aborted == []


class TestControlBatches:
    HEADER = struct.Struct(">qiibIhiqqqhii")

    def marker(self, kind: int) -> bytes:
        # length, attributes, deltas, length of the key (zigzag of 4), version, type, and the value of a marker.
        record = bytes([0x20, 0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes([12]) + bytes(6) + b"\0"
        length = self.HEADER.size + len(record) - 12
        return self.HEADER.pack(3, length, 0, 2, 0, 0x30, 0, 7, 8, 42, 0, -1, 1) + record

    @pytest.mark.parametrize(("kind", "is_abort"), [(0, True), (1, False)])
    def test_a_marker_tells_whether_it_aborts_or_commits(self, kind: int, is_abort: bool) -> None:
        (found,) = batches_of(self.marker(kind))
        assert (found.is_control, found.is_abort, found.producer) == (True, is_abort, 42)


class TestLaterRecords:
    ABORTED = log_of(data(0, 1, 7), end(2, 7, abort=True), data(3, 9, 8), end(10, 8, abort=False))
    TWO = (record(0, "a", 10), record(1, "b", 20))

    def test_what_came_again_with_its_timestamp_is_not_lost(self) -> None:
        found = found_in(self.ABORTED, [*self.TWO, record(3, "b", 20), record(4, "a", 10)])
        assert (found.records, found.again, found.lost, found.unclear) == (2, 2, 0, 0)

    def test_what_never_came_again_is_lost_and_named(self) -> None:
        found = found_in(self.ABORTED, [*self.TWO, record(3, "a", 10), record(4, "c", 99)])
        assert (found.again, found.lost) == (1, 1)
        assert found.first == (AbortedRecord(partition=0, offset=1, timestamp_ms=20, key=b"b".hex()),)
        assert [str(each) for each in found.findings] == ["out-0:1-1"]

    def test_an_earlier_record_is_no_answer(self) -> None:
        log = log_of(data(0, 0, 8), end(1, 8, abort=False), data(2, 2, 7), end(3, 7, abort=True))
        found = found_in(log, [record(0, "a", 10), record(2, "a", 10)])
        assert found.lost == 1

    @pytest.mark.parametrize(("is_changelog", "again", "unclear"), [(True, 2, 0), (False, 1, 1)])
    def test_a_later_timestamp_holds_merged_updates_if_others_of_the_task_came_again(
        self, is_changelog: bool, again: int, unclear: int
    ) -> None:
        """A partition of an output has records of several tasks, and only one of them may have come again."""
        records = [*self.TWO, record(3, "a", 10), record(4, "b", 25)]
        found = found_in(self.ABORTED, records, is_changelog=is_changelog)
        assert (found.again, found.unclear, found.lost) == (again, unclear, 0)

    def test_only_later_timestamps_leave_a_transaction_unclear(self) -> None:
        found = found_in(self.ABORTED, [*self.TWO, record(3, "a", 11), record(4, "b", 25)])
        assert (found.again, found.unclear, found.lost) == (0, 2, 0)

    def test_an_earlier_timestamp_is_another_record(self) -> None:
        found = found_in(self.ABORTED, [*self.TWO, record(3, "a", 9), record(4, "b", 20)])
        assert (found.again, found.lost) == (1, 1)

    def test_the_same_after_a_later_one_counts(self) -> None:
        """An aggregate keeps the largest timestamp, but a stream may be out of order."""
        found = found_in(self.ABORTED, [*self.TWO, record(3, "a", 11), record(4, "a", 10), record(5, "b", 20)])
        assert (found.again, found.unclear) == (2, 0)

    def test_another_aborted_record_is_no_answer(self) -> None:
        log = log_of(data(0, 0, 7), end(1, 7, abort=True), data(2, 2, 7), end(3, 7, abort=True))
        assert found_in(log, [record(0, "a", 10), record(2, "a", 10)]).lost == 2

    def test_a_record_of_an_open_transaction_is_no_answer_yet(self) -> None:
        log = log_of(data(0, 0, 7), end(1, 7, abort=True), data(2, 2, 7))
        assert found_in(log, [record(0, "a", 10), record(2, "a", 10)]).lost == 1

    def test_nothing_is_lost_before_green_has_processed_its_inputs(self) -> None:
        found = found_in(self.ABORTED, [*self.TWO, record(3, "a", 10)], {0: 1})
        assert (found.undecided, found.lost) == (1, 0)

    def test_what_others_abort_is_their_own_affair_and_no_answer(self) -> None:
        log = log_of(data(0, 0, 7), end(1, 7, abort=True), data(2, 2, 9), end(3, 9, abort=True))
        records = [record(0, "a", 10), record(2, "a", 10)]
        found = aborted_report("out", {0: log}, records, EVERYTHING, {9})
        assert (found.records, found.lost) == (1, 1)

    def test_without_keys_the_value_counts_in_any_partition(self) -> None:
        logs = {0: log_of(data(0, 1, 7), end(2, 7, abort=True)), 1: log_of(data(0, 0, 8), end(1, 8, abort=False))}
        records = [record(0, None, 10, b"x"), record(1, None, 10, b"y"), Written(1, 0, 10, None, b"x")]
        for ordered in (records, records[::-1]):
            found = aborted_report("out", logs, ordered, EVERYTHING)
            assert (found.again, found.unclear, found.lost) == (1, 1, 0), "the other one has the same time"

    def test_without_keys_nothing_like_it_is_lost(self) -> None:
        logs = {0: log_of(data(0, 0, 7), end(1, 7, abort=True)), 1: log_of(data(0, 0, 8), end(1, 8, abort=False))}
        records = [record(0, None, 10, b"x"), Written(1, 0, 11, None, b"y")]
        assert aborted_report("out", logs, records, EVERYTHING).lost == 1

    def test_if_the_broker_dates_records_the_value_counts(self) -> None:
        dated = [Written(0, 0, 10, b"a", b"x", True), Written(0, 1, 10, b"b", b"y", True)]
        again = [Written(0, 3, 50, b"a", b"x", True), Written(0, 4, 50, b"b", b"z", True)]
        found = found_in(self.ABORTED, [*dated, *again])
        assert (found.again, found.unclear, found.lost) == (1, 1, 0)


LOST = Aborted(
    topics=(
        AbortedReport(
            topic="out",
            records=3,
            again=1,
            lost=2,
            first=(AbortedRecord(partition=1, offset=40, timestamp_ms=5, key=b"order-7".hex()),),
            spans=(Span(partition=1, first=40, last=44, records=2),),
        ),
    )
)
NOBODY = Acceptances()


def concluded(aborted: Aborted, acceptances: Acceptances = NOBODY) -> Report:
    return report(store_report()).model_copy(update={"aborted": aborted}).concluded(acceptances)


class TestReport:
    def test_lost_records_keep_verify_from_passing_and_are_named(self) -> None:
        found = concluded(LOST)
        assert not found.passed
        assert found.unaccepted == ("out-1:40-44",)
        text = render(found)
        assert "out: 3 records in aborted transactions (1 written again, 2 lost)." in text
        assert "aborted: 2 violations" in text
        assert "order-7" in text

    def test_a_person_can_accept_them_by_their_offsets(self) -> None:
        found = concluded(LOST)
        accepted = Acceptance(
            plan=found.plan, finding="out-1:40-44", records=2, by="ann", at_ms=1, reason="sent again"
        )
        later = concluded(LOST, Acceptances(accepted=(accepted,)))
        assert later.passed
        wider = accepted.model_copy(update={"finding": "out-1:30-44"})
        assert concluded(LOST, Acceptances(accepted=(wider,))).passed, "retention has deleted the first of them"
        narrower = accepted.model_copy(update={"finding": "out-1:40-43"})
        assert not concluded(LOST, Acceptances(accepted=(narrower,))).passed
        assert later.acceptances == (accepted,)
        assert found.compared == {"out-1:40-44": 2}

    def test_green_goes_on_after_them(self) -> None:
        journal = TestWhatAReportIsAbout.JOURNAL
        about = concluded(LOST).model_copy(update={"promotion": journal.promotion})
        error = _findings("app", ControlState(journal=journal, report=about.model_dump(mode="json")))
        assert isinstance(error, UnsafeState)
        assert "none about the copies" in str(error)
        assert "--finding out-1:40-44" in str(error)
        assert f"Let {journal.plan.green} run" in str(error)

    def test_in_place_the_topics_of_both_generations_are_the_same(self) -> None:
        """A range of a changelog is otherwise taken for what a surviving blue has written."""
        captured = Captured(changelog_ends={"out": {1: 10}})
        journal = TestWhatAReportIsAbout.JOURNAL.model_copy(update={"captured": captured, "phase": Phase.STARTED})
        about = concluded(LOST).model_copy(update={"promotion": journal.promotion})
        state = ControlState(journal=journal, report=about.model_dump(mode="json"))
        nowhere = KafkaConnection({"bootstrap.servers": "127.0.0.1:1"})
        assert _looked_at(nowhere, state, journal, "out-1:40-44") == 2

    def test_what_is_not_known_is_told_and_does_not_fail(self) -> None:
        topics = (AbortedReport(topic="out", records=2, undecided=1, unclear=1),)
        found = concluded(Aborted(topics=topics, unprocessed=("in-3",), unread=("out-9",)))
        assert found.passed
        text = render(found)
        assert "(1 unclear, 1 not yet)" in text
        assert "has not processed everything yet (in-3)" in text
        assert "aborted FILE" in text
        assert "took too long: out-9" in text

    def test_nothing_aborted_says_nothing(self) -> None:
        assert told_aborted(Aborted()) == ""
        assert "aborted" not in render(concluded(Aborted()))

    def test_a_report_of_an_earlier_version_is_read(self) -> None:
        record = report(store_report()).model_dump_json()
        assert "aborted" not in record
        assert Report.model_validate_json(record).aborted is None
