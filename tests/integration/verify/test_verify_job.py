"""The submitted job: its exit codes, its report in the control topic, and what happens beside it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Fenced, Refused, UnsafeState
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import LogCount, Report, StoreReport
from kafka_rescale.core.verify.report_text import render
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.copy.fences import topic_ids
from kafka_rescale.kafka.reading.misrouted import look_for_misrouted
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter
from kafka_rescale.operations.verify import verify as operation
from kafka_rescale.operations.verify.accept import accept
from kafka_rescale.spark.verify.compare import compare_stores
from pyspark.sql import SparkSession

from tests.integration.spark_job_helpers import submit_verify
from tests.support.changelogs import trim
from tests.support.expansion.expanded import Expanded, with_other_value
from tests.support.small_application import application
from tests.support.verify.proofs import proof_of, rolling_of

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000


@pytest.fixture
def expanded(client: dict[str, str], unique: str) -> Expanded:
    return Expanded(client, unique, int(time.time() * 1000) - HOUR_MS)


def report_of(expanded: Expanded) -> Report:
    return Report.model_validate(expanded.control.read().report)


def submit(expanded: Expanded, directory: Path) -> subprocess.CompletedProcess[str]:
    return submit_verify(expanded.client, expanded.application, directory)


# In `make test`, test_expansion_crash.py runs `verify` by `spark-submit` until it passes, and the report is in the
# test test_findings_exit_with_1_and_are_printed
@pytest.mark.slow
def test_a_correct_expansion_exits_with_0_and_leaves_its_report(expanded: Expanded, tmp_path: Path) -> None:
    journal = expanded.write()

    done = submit(expanded, tmp_path)

    report = report_of(expanded)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Verification of {expanded.application}: PASSED" in done.stdout
    # By default, Kafka's clients would list their settings for every task.
    assert "isolation.level" not in done.stdout + done.stderr
    assert report.passed
    assert (report.plan, report.promotion) == (journal.plan.fingerprint, journal.promotion)
    assert {s.store: s.green.live for s in report.stores} == {"totals": 21, "sessions": 21}


def no_spark() -> SparkSession:
    raise AssertionError("nothing is left to be compared by Spark")


def test_what_was_compared_before_the_promotion_is_compared_again_only_if_asked_for(
    spark: SparkSession, expanded: Expanded
) -> None:
    # The proof says that these copies are right. They are not, so the test notices whether they are compared.
    journal = expanded.write(sessions=with_other_value(expanded.green_records("sessions")))
    before = {s: report_before(expanded, s, green=21) for s in ("totals", "sessions")}
    green = topic_ids(ClusterAdmin(expanded.connection), [m.target for m in journal.plan.changelogs])
    of_these = {"fences": proof_of(journal).fences.model_copy(update={"green_topics": green})}
    proof = proof_of(journal).model_copy(update={"stores": tuple(before.values()), **of_these})
    rolling = rolling_of(journal)
    last = rolling.fences.model_copy(update={"green_topics": green})
    rolling = rolling.model_copy(update={"fences": last})
    expanded.control.update(lambda _: {Concern.PROOF: proof, Concern.ROLLING_PROOF: rolling})

    report = operation.verify(no_spark, expanded.connection, expanded.application)

    assert report.passed
    assert {s.store: s for s in report.stores} == before
    assert "compared before the promotion, up to the last record" in render(report)
    whole = operation.verify(lambda: spark, expanded.connection, expanded.application, whole=True)
    assert [s.store for s in whole.stores if not s.passed] == ["sessions"]
    assert whole.compared_before == ()

    others = proof.model_copy(update={"fences": proof_of(journal).fences})
    expanded.control.update(lambda _: {Concern.PROOF: others})
    assert not operation.verify(lambda: spark, expanded.connection, expanded.application).passed, "of other topics"
    short = rolling.model_copy(update={"is_complete": False})
    expanded.control.update(lambda _: {Concern.PROOF: proof, Concern.ROLLING_PROOF: short})
    assert not operation.verify(lambda: spark, expanded.connection, expanded.application).passed


def report_before(expanded: Expanded, store: str, green: int) -> StoreReport:
    return StoreReport(
        store=store,
        store_type="key-value",
        blue_topic=expanded.topic(expanded.application, store),
        green_topic=expanded.topic(expanded.green, store),
        blue=LogCount(live=green),
        green=LogCount(live=green),
        expired=0,
        surplus=0,
        partitions=(),
        excused=0,
    )


def test_findings_exit_with_1_and_are_printed(expanded: Expanded, tmp_path: Path) -> None:
    expanded.write(sessions=with_other_value(expanded.green_records("sessions")))

    done = submit(expanded, tmp_path)

    report = report_of(expanded)
    assert done.returncode == 1, done.stderr[-4000:]
    assert [s.store for s in report.stores if not s.passed] == ["sessions"]
    assert "sessions key 0x6b65792d303136" in done.stdout


# In `make test`, test_before_promotion_there_is_nothing_to_prove, without `spark-submit`
@pytest.mark.slow
def test_nothing_to_verify_exits_with_2_and_a_remedy(expanded: Expanded, tmp_path: Path) -> None:
    done = submit(expanded, tmp_path)

    assert done.returncode == 2
    assert "Run verify after the cutover." in done.stdout, done.stdout[-3000:]
    assert expanded.control.read().report == {}


def test_a_wrong_start_offset_and_a_stale_producer_are_findings(expanded: Expanded, spark: SparkSession) -> None:
    journal = expanded.write()
    expanded.send_as_before_the_growth(b"customer-8")
    wrong = {expanded.orders: {**journal.green_start[expanded.orders], 2: 5}}
    expanded.record(journal.model_copy(update={"green_start": wrong}))

    report = operation.verify(lambda: spark, expanded.connection, expanded.application)

    assert not report.passed
    assert all(s.passed for s in report.stores)
    assert [(f.oracle, f.subject) for f in report.findings] == [
        (Oracle.START_OFFSETS, f"{expanded.orders}-2"),
        (Oracle.MISROUTED, f"{expanded.orders}-0"),
    ]
    assert "1 of 1 records since the cutover misrouted" in render(report)
    assert report_of(expanded) == report


def test_what_a_person_has_accepted_is_reported_and_no_finding(expanded: Expanded, spark: SparkSession) -> None:
    journal = expanded.write()
    expanded.send_as_before_the_growth(b"customer-8")
    (found,) = look_for_misrouted(expanded.connection, journal)
    names = [str(finding) for finding in found.findings]
    accept(application(expanded.application), expanded.connection, findings=names, by="ada", reason="replayed")

    report = operation.verify(lambda: spark, expanded.connection, expanded.application)

    assert (report.passed, report.findings, [a.finding for a in report.acceptances]) == (True, (), names)
    assert f"{names[0]}: 1 accepted by ada at " in render(report)


def test_retention_that_deletes_between_plan_and_read_makes_it_plan_again(
    expanded: Expanded, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expanded.write()
    records = expanded.green_records("sessions")
    partition = records[0][0]
    green = expanded.topic(expanded.green, "sessions")
    planned: list[list[int]] = []

    def deleting(session: SparkSession, kafka: dict[str, str], pairs: Sequence[StorePair], *clock: Any) -> Any:
        planned.append(next(pair.green.begins for pair in pairs if pair.store == "sessions"))
        # The aborted records come first. Only the record after them counts.
        trim(expanded.client, green, partition, sum(p == partition for p, _ in records) + 2)
        return compare_stores(session, kafka, pairs, *clock)

    monkeypatch.setattr(operation, "compare_stores", deleting)
    report = operation.verify(lambda: spark, expanded.connection, expanded.application)

    assert len(planned) == 2
    assert planned[0] != planned[1]
    assert report.passed, report.findings


def test_a_newer_attempt_fences_the_older_one(
    expanded: Expanded, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expanded.write()

    def overtaken(*arguments: Any) -> Any:
        TransactionalWriter(expanded.connection, f"kafka-rescale-{expanded.application}/report")
        return compare_stores(*arguments)

    monkeypatch.setattr(operation, "compare_stores", overtaken)
    with pytest.raises(Fenced):
        operation.verify(lambda: spark, expanded.connection, expanded.application)
    assert expanded.control.read().report == {}


def test_a_finished_expansion_keeps_the_report_that_it_was_finished_with(
    expanded: Expanded, spark: SparkSession
) -> None:
    journal = expanded.write()
    report = operation.verify(lambda: spark, expanded.connection, expanded.application)
    expanded.record(journal.model_copy(update={"phase": Phase.COMPLETE}))

    assert operation.verify(lambda: spark, expanded.connection, expanded.application) == report


@pytest.mark.parametrize("phase", [Phase.WARMING, Phase.CAUGHT_UP, Phase.ROLLED_BACK])
def test_before_promotion_there_is_nothing_to_prove(expanded: Expanded, spark: SparkSession, phase: Phase) -> None:
    expanded.write(phase=phase)

    with pytest.raises(Refused, match=f"phase {phase}"):
        operation.verify(lambda: spark, expanded.connection, expanded.application)


def test_a_topic_made_anew_is_never_compared(expanded: Expanded, spark: SparkSession) -> None:
    journal = expanded.write()
    name = expanded.topic(expanded.green, "totals")
    beyond = {**journal.green_ends, name: {p: end + 10 for p, end in journal.green_ends[name].items()}}
    expanded.record(journal.model_copy(update={"green_ends": beyond}))

    with pytest.raises(UnsafeState, match="deleted or made anew"):
        operation.verify(lambda: spark, expanded.connection, expanded.application)
