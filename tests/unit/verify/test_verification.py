"""What is compared, where green had to start, and the text of the report."""

from __future__ import annotations

import pytest
from kafka_rescale.airflow.spark.job_results import _findings
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.cluster import GroupDescription, TopicDescription
from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.record_limits import retention_ms
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.page.health import Level, health_of
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.verify.misrouted import InputReport, Misrouted, Span
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.pairs import CLOCK_SKEW_MS, ComparedLog, StorePair, expansion_pair, residue_modulus
from kafka_rescale.core.verify.report import LogCount, PartitionContent, Report, StoreReport, is_about
from kafka_rescale.core.verify.report_text import render, table
from kafka_rescale.core.verify.start_offsets import check_start_offsets

from tests.support.plans import plan_for

ORDERS = InputPlan(topic="orders", policy=InputPolicy.PAUSED, partitioner="murmur2", current=2, target=3)
STOPPED = {"orders": {0: 100, 1: 70}}
STARTED = {"orders": {0: 100, 1: 70, 2: 0}}
NOW = 1_700_000_000_000


def topic(name: str, partitions: int = 2, **configs: str) -> TopicDescription:
    return TopicDescription(name, partitions, 1, {key.replace("_", "."): value for key, value in configs.items()})


def start_findings(**changes: dict[str, dict[int, int]]) -> list[str]:
    offsets = {"stopped": STOPPED, "started": STARTED, "committed": STARTED} | changes
    return [f"{f.subject}: {f.detail}" for f in check_start_offsets((ORDERS,), **offsets)]


class TestStartOffsets:
    def test_green_starts_where_blue_stopped_and_at_0_in_new_partitions(self) -> None:
        assert start_findings() == []

    def test_green_may_have_gone_on(self) -> None:
        assert start_findings(committed={"orders": {0: 500, 1: 70, 2: 9}}) == []

    def test_a_partition_that_blue_never_committed_starts_at_0(self) -> None:
        assert start_findings(stopped={"orders": {0: 100}}, started={"orders": {0: 100, 1: 0, 2: 0}}) == []

    def test_a_later_start_has_skipped_records(self) -> None:
        found = start_findings(started={"orders": {0: 103, 1: 70, 2: 0}})
        assert found == ["orders-0: green started at 103 instead of 100: 3 offsets skipped"]

    def test_an_earlier_start_reads_records_twice(self) -> None:
        found = start_findings(started={"orders": {0: 100, 1: 60, 2: 0}})
        assert found == ["orders-1: green started at 60 instead of 70: 10 offsets read twice"]

    def test_a_new_partition_without_an_offset_is_left_to_auto_offset_reset(self) -> None:
        found = start_findings(started=STOPPED, committed=STOPPED)
        assert found == [
            "orders-2: green was given no offset; it had to start at 0",
            "orders-2: green has no committed offset; it started at 0",
        ]

    def test_committed_offsets_never_go_back(self) -> None:
        found = start_findings(committed={"orders": {0: 99, 1: 70, 2: 0}})
        assert found == ["orders-0: green's committed offset is 99, below its start at 100"]


class TestWhatIsCompared:
    MOVE = Move(
        kind=MoveKind.CHANGELOG,
        source="blue",
        target="green",
        store="totals",
        store_type="window",
        source_partitions=2,
        target_partitions=4,
    )

    def whole_pair(self, blue: TopicDescription, green: TopicDescription, move: Move) -> StorePair:
        begins = {"blue": {0: 3, 1: 0}, "green": dict.fromkeys(range(4), 0)}
        ends = {"blue": {0: 10, 1: 20}, "green": dict.fromkeys(range(4), 9)}
        topics = {"blue": blue, "green": green}
        return expansion_pair(move, begins=begins, blue_ends=ends, green_ends=ends, topics=topics, now_ms=NOW)

    def pair_with(self, blue: TopicDescription, green: TopicDescription) -> int | None:
        pair = self.whole_pair(blue, green, self.MOVE)
        assert pair.blue.ranges == {0: (3, 10), 1: (0, 20)}
        assert (pair.blue.partitions, pair.green.partitions) == (2, 4)
        return pair.expires_before_ms

    def test_a_compacted_log_never_expires(self) -> None:
        compacted = topic("t", cleanup_policy="compact", retention_ms="1000")
        assert self.pair_with(compacted, compacted) is None

    def test_the_shorter_retention_decides_and_brokers_may_be_ahead(self) -> None:
        day, week = (
            topic("t", cleanup_policy="compact,delete", retention_ms=str(days * 86_400_000)) for days in (1, 7)
        )
        assert self.pair_with(week, day) == NOW + CLOCK_SKEW_MS - 86_400_000

    def test_unlimited_retention_never_expires(self) -> None:
        assert retention_ms(topic("t", cleanup_policy="compact,delete", retention_ms="-1")) is None

    def test_of_a_versioned_store_every_record_that_compaction_had_to_keep_is_compared(self) -> None:
        day, week = (topic("t", min_compaction_lag_ms=str(days * 86_400_000)) for days in (1, 7))
        move = self.MOVE.model_copy(update={"store_type": "versioned"})
        since = self.whole_pair(day, week, move).versions_since_ms
        assert since == NOW + CLOCK_SKEW_MS - 86_400_000
        assert self.whole_pair(day, week, self.MOVE).versions_since_ms is None

    def test_subscriptions_are_compared_with_the_left_table_of_each_side(self) -> None:
        left = LeftTable(partitioner="crc32", key_topic="l", source_partitions=3, target_partitions=6)
        move = self.MOVE.model_copy(update={"store_type": "foreign-key-subscription", "left": left})
        assert self.whole_pair(topic("t"), topic("t"), move).left == left
        assert self.whole_pair(topic("t"), topic("t"), self.MOVE).left is None

    def test_in_place_one_log_is_read_from_blues_begin_to_greens_end(self) -> None:
        blue = ComparedLog.of("t", {0: 2, 1: 7}, {0: 9, 1: 7})
        green = ComparedLog.of("t", {0: 2, 1: 8, 2: 0}, {0: 12, 1: 9, 2: 3})
        pair = StorePair(store="s", store_type="key-value", blue=blue, green=green)
        assert [(log.topic, log.begins, log.ends) for log in pair.logs] == [("t", [2, 8, 0], [12, 9, 3])]

    @pytest.mark.parametrize(
        ("partitioner", "counts", "modulus"),
        [
            ("murmur2", (4, 8), 4),
            ("murmur2", (4, 6), 0),
            ("linear-hashing:2", (4, 8), 0),
            ("static:tests.support.user_partitioners:claims_to_be_static", (4, 6), 6),
        ],
    )
    def test_where_a_key_may_have_gone_follows_from_its_partitioner(
        self, partitioner: str, counts: tuple[int, int], modulus: int
    ) -> None:
        assert residue_modulus(partitioner, "", *counts) == modulus

    def test_a_log_start_past_the_captured_end_leaves_nothing(self) -> None:
        assert ComparedLog.of("t", {0: 15}, {0: 10}).ranges == {0: (10, 10)}


def store_report(**changes: object) -> StoreReport:
    return StoreReport(
        store="totals",
        store_type="session",
        blue_topic="app-totals-changelog",
        green_topic="app-g2-totals-changelog",
        blue=LogCount(records=1200, live=1000, tombstoned=10),
        green=LogCount(records=1200, live=1000, tombstoned=10),
        expired=0,
        surplus=0,
        partitions=(
            PartitionContent(partition=0, blue_live=1000, green_live=1000, blue_hash="ab", green_hash="ab"),
        ),
    ).model_copy(update=changes)


def report(*stores: StoreReport, start_offsets: tuple[KeyFinding, ...] = ()) -> Report:
    return Report(
        application="app",
        blue="app",
        green="app-g2",
        generation=2,
        plan="0123",
        passed=not start_offsets and all(s.passed for s in stores),
        as_of_ms=NOW,
        seconds=12.5,
        start_offsets=start_offsets,
        stores=stores,
    )


class TestReport:
    def test_a_passed_report_shows_counts_and_equal_hashes(self) -> None:
        text = render(report(store_report()))
        assert "Verification of app: PASSED" in text
        assert "1,200" in text
        assert "violations" not in text

    def test_a_failed_report_names_oracle_key_and_places(self) -> None:
        finding = KeyFinding(
            oracle=Oracle.STATE,
            subject="totals",
            detail="value differs",
            key="6162",
            text="ab",
            blue="0@7",
            green="1@9",
        )
        text = render(report(store_report(failures={Oracle.STATE: 4000}, findings=(finding,))))
        assert "Verification of app: FAILED" in text
        assert "state: 4,000 violations of" in text
        assert "totals key 0x6162 “ab”: value differs [blue 0@7, green 1@9]" in text

    def test_hashes_of_a_store_that_has_passed_differ_only_by_what_is_not_compared(self) -> None:
        other = PartitionContent(partition=0, blue_live=9, green_live=9, blue_hash="ab", green_hash="cd")
        store = store_report(partitions=(other,), excused=3)
        text = render(report(store))
        assert "differs" not in text
        assert text.endswith("cd             not all compared")
        assert "3 keys that were written meanwhile are not compared" in text
        for wrong in (store.model_copy(update={"failures": {Oracle.STATE: 1}}), store_report(partitions=(other,))):
            assert "differs" in render(report(wrong))

    def test_findings_about_offsets_have_no_key(self) -> None:
        finding = KeyFinding(oracle=Oracle.START_OFFSETS, subject="orders-0", detail="3 offsets skipped")
        text = render(report(store_report(), start_offsets=(finding,)))
        assert "start offsets: 1 violations" in text
        assert "\n  orders-0: 3 offsets skipped" in text

    def test_it_goes_to_json_and_back(self) -> None:
        whole = report(store_report(failures={Oracle.STATE: 1}))
        assert Report.model_validate_json(whole.model_dump_json()) == whole

    @pytest.mark.parametrize("rows", [[], [("a", 1), ("bbb", 20_000)]])
    def test_columns_are_as_wide_as_their_widest_cell(self, rows: list[tuple[str, int]]) -> None:
        lines = table(("name", "count"), rows).splitlines()
        assert lines[0].startswith("name")
        assert {len(line) for line in lines[2:]} <= {len(lines[1])}


class TestWhatAReportIsAbout:
    JOURNAL = Journal(
        plan=plan_for("app"),
        owner="run-1",
        captured=Captured(committed={"orders": {0: 60, 1: 70}}),
        green_ends={"app-g2-totals-changelog": {0: 5}},
        green_start={"orders": {0: 60, 1: 70, 2: 0}},
    )

    @pytest.mark.parametrize(
        "changes",
        [
            {"phase": Phase.VERIFIED, "owner": "run-2", "timings": {"total": 7.0}},
            # The time is by the clock of the cutover's machine, which differs from other clocks.
            {"pause_started_ms": NOW + 1},
        ],
    )
    def test_it_proves_what_was_promoted_whatever_becomes_of_it(self, changes: dict[str, object]) -> None:
        journal = self.JOURNAL.model_copy(update=changes)
        assert is_about(report().model_copy(update={"promotion": self.JOURNAL.promotion}).model_dump(), journal)

    @pytest.mark.parametrize(
        "changes",
        [
            {"plan": plan_for("app", partitions=6)},
            {"attempt": 2},
            {"captured": Captured(committed={"orders": {0: 60, 1: 71}})},
            {"green_ends": {"app-g2-totals-changelog": {0: 6}}},
            {"green_start": {"orders": {0: 60, 1: 70, 2: 1}}},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_it_proves_nothing_of_another_promotion(self, changes: dict[str, object]) -> None:
        another = self.JOURNAL.model_copy(update=changes).promotion
        assert not is_about({"promotion": another, "as_of_ms": NOW}, self.JOURNAL)

    def test_the_journal_has_the_same_name_for_it_when_it_is_read_again(self) -> None:
        again = Journal.model_validate_json(self.JOURNAL.model_dump_json())
        assert again.promotion == self.JOURNAL.promotion

    @pytest.mark.parametrize("said", [{}, {"plan": JOURNAL.plan.fingerprint, "as_of_ms": NOW}])
    def test_one_that_says_nothing_of_it_proves_nothing(self, said: dict[str, object]) -> None:
        assert not is_about(said, self.JOURNAL)


class TestWhatIsToBeDoneAboutFindings:
    JOURNAL = TestWhatAReportIsAbout.JOURNAL
    STRAY = Misrouted(partition=2, offset=7, key="6b", home=5)
    INPUT = InputReport(
        topic="orders",
        records=9,
        misrouted=2,
        first=(STRAY,),
        spans=(Span(partition=2, first=7, last=8, records=2),),
    )

    def refused(self, found: Report) -> str:
        record = found.concluded(Acceptances()).model_copy(update={"promotion": self.JOURNAL.promotion})
        state = ControlState(journal=self.JOURNAL, report=record.model_dump(mode="json"))
        error = _findings("app", state)
        assert isinstance(error, UnsafeState)
        health = health_of(state, GroupDescription("app-g2", "Stable", ("i",)))
        assert health.level is Level.BAD
        assert ("stop app-g2" in health.reason) is ("Stop app-g2" in str(error))
        return f"{error} {health.reason}"

    def test_green_goes_on_if_a_producer_has_only_misrouted_records(self) -> None:
        told = self.refused(report(store_report()).model_copy(update={"inputs": (self.INPUT,)}))
        assert "Let app-g2 run" in told
        assert "let app-g2 run" in told
        assert told.count("restart it, and mend what these records did") == 2
        assert told.count("--finding orders-2:7-8") == 2
        assert "top app-g2" not in told

    def test_any_other_finding_stops_it(self) -> None:
        failed = report(store_report(failures={Oracle.STATE: 1}))
        assert "Stop app-g2, and look at the findings" in self.refused(failed)
        assert "Stop app-g2" in self.refused(failed.model_copy(update={"inputs": (self.INPUT,)}))
