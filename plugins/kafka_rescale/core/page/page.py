"""Everything that the page shows about one application."""

from __future__ import annotations

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.cutover_steps import CutoverStep, steps_to_come
from kafka_rescale.core.expansion.downtime import Downtime, downtime
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.core.expansion.silent_jobs import with_silent_jobs
from kafka_rescale.core.expansion.switch_wait import told_switch
from kafka_rescale.core.page.autoscaling import AutoscalingState, autoscaling_state
from kafka_rescale.core.page.carried import carried_inputs
from kafka_rescale.core.page.copy_estimate import BRIDGE, PROVE, JobProgress, Work, in_order, job_progress, work_of
from kafka_rescale.core.page.history import HEADER, history_rows
from kafka_rescale.core.page.summary import Summary, summary, topic_counts
from kafka_rescale.core.page.topology_graph import Graph, topology_graph
from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.aborted import told_aborted
from kafka_rescale.core.verify.key_distribution import KeyDistribution, key_distributions
from kafka_rescale.core.verify.promotable import proven_until
from kafka_rescale.core.verify.proof import Proof as CopiesProof
from kafka_rescale.core.verify.proof import is_of
from kafka_rescale.core.verify.report import Report, is_about


class JobLags(Value):
    """The history of a job's or gate's lags."""

    job: str
    history: LagHistory


class TopicLags(Value):
    """The newest lags of a topic, by partition. ``NO_POSITION`` for a partition whose copy has not begun."""

    topic: str
    lags: tuple[int, ...]


class Proof(Value):
    """The summary of the verification report. The page reads the report itself separately.

    :param current: whether the report belongs to the plan of the journal.
    :param accepted: how many findings a user has accepted.
    :param not_copied: which stores were neither copied nor compared, and why, in a sentence; empty if all were.
    :param aborted: what the new generation has aborted since the promotion, in sentences; empty if nothing.
    """

    passed: bool
    current: bool
    as_of_ms: int
    seconds: float
    stores: int
    entries: int
    findings: int
    accepted: int = 0
    not_copied: str = ""
    aborted: str = ""


class ProvenBefore(Value):
    """The proof of the copies before the promotion.

    :param current: whether the proof is of the journal's attempt, so that a promotion may rely on it.
    :param excused: the number of keys that the proof has left out, because the application had written them since
        the fence.
    :param since_ms: the time up to which the job that copies has compared the records written after the proof.
        None if it has not compared any yet.
    :param since_records: how many records of both generations this job has compared.
    :param since_findings: how many violations it has found in them.
    :param not_copied: which stores were neither copied nor compared, and why, in a sentence; empty if all were.
    """

    passed: bool
    current: bool
    as_of_ms: int
    seconds: float
    stores: int
    entries: int
    excused: int
    findings: int
    since_ms: int | None = None
    since_records: int = 0
    since_findings: int = 0
    not_copied: str = ""


class PastExpansions(Value):
    """The attempts that have ended, as a table."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


class ApplicationPage(Value):
    """Everything about one application, except its verification report.

    :param threshold: the acceptable recovery lag of the gates, in offsets per partition.
    :param lags: the history of lags of each job or gate, in the order of a run. A bridge is among them once it
        copies.
    :param lags_now: the newest measurement of lags.
    :param measured_by: the job or gate that has made this measurement.
    :param measured_ms: the time of this measurement, in ms since the epoch.
    :param is_gated: whether a gate measures these partitions, so that a lag of one of them can keep it closed.
    :param cutover: the steps that the cutover of the expansion in progress will take, until it is promoted.
    :param pace: in words, what limits or pauses the copy, and how fast each job may be now. Empty without a limit.
    :param switch: in words, what the switch waits for, and for how long. Empty if no switch is to come.
    """

    summary: Summary
    as_of_ms: int
    graph: Graph
    work: Work
    jobs: tuple[JobProgress, ...]
    threshold: int
    lags: tuple[JobLags, ...]
    lags_now: tuple[TopicLags, ...]
    measured_by: str | None
    measured_ms: int | None
    is_gated: bool
    pace: str
    cutover: tuple[CutoverStep, ...]
    switch: str
    downtime: Downtime
    proof: Proof | None
    proven: ProvenBefore | None
    distributions: tuple[KeyDistribution, ...]
    autoscaling: AutoscalingState
    history: PastExpansions


def application_page(
    application: Application, topology: Topology, control: ControlState, found: ClusterDescription, now_ms: int
) -> ApplicationPage:
    """Return everything about one application.

    :param found: the topics and the group of the running generation.
    :param now_ms: the time at which all this was read, in ms since the epoch.
    """
    control, journal = with_silent_jobs(control, now_ms), control.journal
    plan = journal.plan if journal is not None and journal.in_progress else None
    results = in_order(control.results.values()) if journal is not None else []
    is_promoted = journal is not None and journal.is_promoted
    # The lags of a bridge keep no gate closed, and before the promotion a bridge copies nothing. A proof has no
    # lag.
    read = [r for r in results if r.lags.samples and r.job != PROVE and (is_promoted or r.job != BRIDGE)]
    measured = max(read, key=_measured, default=None)
    report = Report.model_validate(control.report) if control.report else None
    thresholds = [r.lags.threshold for r in reversed(results) if r.lags.threshold is not None]
    return ApplicationPage(
        summary=summary(application, topology, control, found, now_ms),
        as_of_ms=now_ms,
        graph=topology_graph(
            topology,
            topic_counts(application, topology, control, found),
            plan,
            carried=carried_inputs(control, topology.inputs),
        ),
        work=work_of(control),
        jobs=tuple(job_progress(r, journal.plan, is_promoted=is_promoted) for r in results) if journal else (),
        threshold=next(iter(thresholds), application.acceptable_recovery_lag),
        lags=tuple(JobLags(job=r.job, history=r.lags) for r in read),
        lags_now=_lags_now(measured) if measured else (),
        measured_by=measured.job if measured else None,
        measured_ms=_measured(measured) if measured else None,
        is_gated=measured is not None and measured.lags.threshold is not None,
        pace=told_pace(control),
        cutover=steps_to_come(control, application),
        switch=told_switch(control, now_ms),
        downtime=downtime(journal, is_live=found.group.is_live),
        proof=_proof(report, is_current=bool(journal and is_about(control.report, journal))) if report else None,
        proven=_proven_before(control),
        distributions=key_distributions(report) if report else (),
        autoscaling=autoscaling_state(application, topology, control, found),
        history=PastExpansions(header=HEADER, rows=history_rows(control.history.values())),
    )


def _proven_before(control: ControlState) -> ProvenBefore | None:
    """Return the proof of the expansion in progress. None if there is no proof, or after the promotion."""
    journal = control.journal
    if journal is None or journal.is_promoted or not is_of(control.proof, journal):
        return None
    proof, rolling = CopiesProof.model_validate(control.proof), proven_until(control, journal)
    return ProvenBefore(
        passed=proof.passed,
        current=proof.attempt == journal.attempt,
        as_of_ms=proof.fences.as_of_ms,
        seconds=proof.seconds,
        stores=len(proof.stores),
        entries=proof.entries,
        excused=proof.excused,
        findings=proof.violations,
        since_ms=rolling.fences.as_of_ms if rolling else None,
        since_records=rolling.records if rolling else 0,
        since_findings=rolling.violations if rolling else 0,
        not_copied=told_not_copied(proof.not_copied),
    )


def _measured(result: JobResult) -> int:
    return result.lags.samples[-1].at_ms


def _lags_now(result: JobResult) -> tuple[TopicLags, ...]:
    topics: dict[str, dict[int, int]] = {}
    for each in result.partitions:
        topics.setdefault(each.topic, {})[each.partition] = each.lag
    return tuple(TopicLags(topic=topic, lags=tuple(of[p] for p in sorted(of))) for topic, of in topics.items())


def _proof(report: Report, *, is_current: bool) -> Proof:
    failures = sum(sum(s.failures.values()) for s in report.stores)
    lost = report.aborted.lost if report.aborted else 0
    return Proof(
        passed=report.passed,
        current=is_current,
        as_of_ms=report.as_of_ms,
        seconds=report.seconds,
        stores=len(report.stores),
        entries=sum(s.green.live for s in report.stores),
        findings=failures + len(report.start_offsets) + sum(i.misrouted for i in report.inputs) + lost,
        accepted=len(report.acceptances),
        not_copied=told_not_copied(report.not_copied),
        aborted=told_aborted(report.aborted),
    )
