"""What the commands show about a cluster, a plan and the control topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from kafka_rescale.cli.group import SeenGroup
from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import AT_WORK, JOB, NOT_AT_WORK
from kafka_rescale.core.expansion.cutover_steps import CutoverStep
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.core.expansion.prewarming import remark_on
from kafka_rescale.core.expansion.switch_wait import switch_to_come
from kafka_rescale.core.expansion.waiting_jobs import told_waiting
from kafka_rescale.core.plan.not_copied import NOT_COPIED, told_not_copied
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import moment
from kafka_rescale.core.verify.aborted import told_aborted
from kafka_rescale.core.verify.promotable import proven_until
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.core.verify.report import Report, is_about


def cluster_view(
    application: Application,
    topology: Topology,
    found: ClusterDescription,
    running: str,
    renamed: Mapping[str, str],
) -> Document:
    """Show the running generation.

    :param running: The ``application.id`` of that generation.
    :param renamed: For each repartitioned input, the topic that this generation reads instead.
    """
    roles = {renamed.get(topic, topic): "input" for topic in topology.inputs}
    roles |= dict.fromkeys(topology.outputs, "output")
    names = blue_names(application, running)
    roles |= {names.repartition(t): "repartition" for t in sorted(topology.repartitions)}
    types = {s.name: s.type for s in application.stores}
    roles |= {names.changelog(s): f"changelog, {types[s]}" for s in topology.stores}
    rows = [
        (name, role, *_counts(found, name, is_read=role in {"input", "repartition"}))
        for name, role in roles.items()
    ]
    header = ("topic", "role", "partitions", "replicas", "records at most", "lag")
    group = found.group
    data = {
        "application_id": running,
        "mode": str(application.mode),
        "group": {"state": group.state, "members": len(group.members)},
        "topics": [dict(zip(header, row, strict=True)) for row in rows],
    }
    members = f"group {group.state} with {len(group.members)} members"
    text = f"{running}: {members}; {found.brokers} brokers; mode {application.mode}."
    return Document(data, text, (Rows("Topics", header, rows),))


def _counts(found: ClusterDescription, name: str, *, is_read: bool) -> tuple[object, ...]:
    topic = found.topics.get(name)
    if topic is None:
        return ("missing", "", "", "")
    ends = {tp: end for tp, end in found.ends.items() if tp[0] == name}
    records = sum(end - found.begins.get(tp, 0) for tp, end in ends.items())
    lag = sum(max(0, end - found.committed.get(tp, found.begins.get(tp, 0))) for tp, end in ends.items())
    return (topic.partitions, topic.replication_factor, records, lag if is_read else "")


def plan_view(
    plan: Plan | None,
    messages: Sequence[str],
    steps: Sequence[CutoverStep] = (),
    predicted: Prediction | None = None,
) -> Document:
    """Show a plan, or that there is nothing to do.

    :param steps: What the cutover will do.
    :param predicted: The prediction for this expansion, for programs. The messages tell it to people.
    """
    text = "\n".join(messages)
    if plan is None:
        return Document({"plan": None, "messages": list(messages)}, text)
    rows: list[tuple[object, ...]] = []
    for stage in plan.stages:
        rows += [(stage.name, "grow output", g.topic, g.topic, g.current, g.target) for g in stage.grow_outputs]
        rows += [
            (stage.name, f"move {_told(m)}", m.source, m.target, m.source_partitions, m.target_partitions)
            for m in stage.moves
        ]
        rows += [
            (stage.name, "create successor", m.source, m.target, m.source_partitions, m.target_partitions)
            for m in stage.bridges
        ]
        rows += [(stage.name, NOT_COPIED, f"store {store}", "empty", "", "") for store in stage.not_copied]
    last = "start" if plan.is_in_place else "cutover"
    rows += [(last, f"input, {i.policy}", i.topic, i.green_topic, i.current, i.target) for i in plan.inputs]
    data = {
        "plan": plan.model_dump(mode="json"),
        "fingerprint": plan.fingerprint,
        "messages": list(messages),
        "cutover": [asdict(step) for step in steps],
        "predicted": predicted.model_dump(mode="json") if predicted is not None else None,
    }
    way = f"{plan.blue}, in place" if plan.is_in_place else f"{plan.blue} -> {plan.green}"
    title = f"{way}, {plan.partitions} partitions (plan {plan.fingerprint})"
    tables = [Rows(title, ("stage", "what", "from", "to", "now", "then"), rows)]
    if steps:
        numbered = [(n, step.moment, step.does, "\n".join(step.names)) for n, step in enumerate(steps, 1)]
        tables.append(Rows("What the cutover will do", ("", "when", "step", "names"), numbered))
    return Document(data, text, tables)


def _told(move: Move) -> str:
    return f"{move.kind}, {move.compression}" if move.compression else str(move.kind)


def status_view(
    application: Application,
    control: ControlState,
    progress: Sequence[PartitionProgress],
    switch: str = "",
    group: SeenGroup | None = None,
) -> Document:
    """Show what the control topic knows, and whether anybody processes the inputs.

    :param control: The content of the control topic, with the present state of the bridge and of jobs that
        are silent (``with_live_bridge``, ``with_silent_jobs``).
    :param progress: The position and the end of each partition that is being copied.
    :param switch: What the switch waits for.
    :param group: The group of the running generation; None if it was not looked at.
    """
    stages = _stage_lags(control, progress)
    results = [(r.job, r.state, r.attempt, r.records, r.detail) for r in control.results.values()]
    is_about_present = control.journal is None or is_about(control.report, control.journal)
    data = {
        **control.model_dump(mode="json", include={"generations", "lease", "results"}),
        "application": application.application_id,
        "mode": str(application.mode),
        "phase": str(control.journal.phase) if control.journal else None,
        "target": control.journal.plan.partitions if control.journal else None,
        "rollback_reason": control.journal.rollback_reason if control.journal else "",
        "attempt": control.journal.attempt if control.journal else None,
        "group": group.data if group else None,
        "health": group.health.model_dump(mode="json") if group and group.health else None,
        "timings": control.journal.timings if control.journal else {},
        "prewarmed": control.journal.prewarmed if control.journal else {},
        "lags": [
            {"stage": name, "partitions": n, "worst": worst, "without_position": open_}
            for name, n, worst, open_ in stages
        ],
        "switch": waited.model_dump(mode="json") if (waited := switch_to_come(control)) else None,
        "pace": pace.model_dump(mode="json") if (pace := _pace(control)) and told_pace(control) else None,
        "rates": {job: rate.model_dump(mode="json") for job, rate in control.rates.items()},
        "proven": _proven(control),
        "verified": control.report.get("passed") if is_about_present else None,
        "acceptances": control.acceptances.model_dump(mode="json")["accepted"],
        "bridge": bridge.model_dump(mode="json") if (bridge := control.bridge_of(control.bridging)) else None,
        "autoscaling": control.autoscaling.model_dump(mode="json") if control.autoscaling else None,
    }
    tables = (
        Rows("Lag", ("stage", "partitions", "largest lag", "not begun"), stages),
        Rows("Results", ("job", "state", "attempt", "records", "detail"), results),
    )
    return Document(data, _summary(application, control, switch, group), tables)


def _pace(control: ControlState) -> Pace | None:
    """Return what is ordered about the pace of the expansion in progress; None if nothing is."""
    pace, journal = control.pace, control.journal
    return pace if pace is not None and journal is not None and pace.plan == journal.plan.fingerprint else None


def _summary(application: Application, control: ControlState, switch: str, group: SeenGroup | None) -> str:
    generations, journal, lease = control.generations, control.journal, control.lease
    lines = [
        f"running: {generations.running}, generation {generations.generation}, {generations.partitions} partitions"
        if generations
        else f"running: {application.application_id}, generation 1 (never rescaled)",
        f"expansion to {journal.plan.partitions} partitions{', in place' if journal.plan.is_in_place else ''}: "
        f"{journal.phase}, attempt {journal.attempt}"
        if journal
        else "expansion: none",
        *(group.lines() if group else ()),
        f"lease: {lease.owner}, for {lease.target} partitions" if lease and not lease.released else "lease: free",
    ]
    lines += filter(None, [switch, told_pace(control), *told_waiting(control)])
    if journal and journal.rollback_reason:
        lines.append(f"rolled back because: {journal.rollback_reason}")
    if journal and "total" in journal.timings:
        lines.append(f"pause: {journal.timings['total']:.1f} s")
    if journal and (said := remark_on(journal)):
        lines.append(said)
    bridging = control.bridging
    if bridging and bridging.is_promoted and bridging.plan.bridges and (result := control.results.get(JOB)):
        lines.append(_bridge_line(Bridge.of(bridging.plan, control.bridge_of(bridging)), result))
    if (watched := control.results.get("watch")) is not None:
        lines.append(f"autoscaling: {watched.state} at {moment(watched.as_of_ms)}: {watched.detail}")
    if (proof := _proof(control)) is not None:
        verdict = "passed" if proof.passed else "failed"
        is_earlier = journal is not None and proof.attempt != journal.attempt
        of = f", of attempt {proof.attempt} (this attempt proves its copies again)" if is_earlier else ""
        lines.append(f"proof before the promotion{of}: {verdict}; {proof.told}")
        lines += [*(f"finding {name}" for name in proof.unaccepted), *map(str, proof.acceptances)]
        if control.journal and (rolling := proven_until(control, control.journal)) is not None:
            lines.append(f"  {rolling.told}")
            lines += [f"finding {name}" for name in rolling.unaccepted(control.acceptances)]
    if control.report:
        report = Report.model_validate(control.report)
        lines += _verification(report, is_older=bool(journal and not is_about(control.report, journal)))
    return "\n".join(lines)


def _proof(control: ControlState) -> Proof | None:
    """Return the proof of the expansion in progress; None after the promotion, because then the report counts."""
    journal = control.journal
    if journal is None or journal.is_promoted or not is_of(control.proof, journal):
        return None
    return Proof.model_validate(control.proof)


def _proven(control: ControlState) -> dict[str, object] | None:
    proof = _proof(control)
    if proof is None or control.journal is None:
        return None
    rolling = proven_until(control, control.journal)
    return {
        "passed": proof.passed,
        "attempt": proof.attempt,
        "as_of_ms": proof.fences.as_of_ms,
        "entries": proof.entries,
        "excused": proof.excused,
        "not_copied": list(proof.not_copied),
        "findings": [*proof.unaccepted, *(rolling.unaccepted(control.acceptances) if rolling else ())],
        "compared_until_ms": rolling.fences.as_of_ms if rolling else None,
    }


def _verification(report: Report, *, is_older: bool) -> list[str]:
    subject = f"verification of the expansion before it, to {report.green}" if is_older else "verification"
    accepted = f", with {len(report.acceptances)} findings accepted" if report.acceptances else ""
    aborted = told_aborted(report.aborted)
    return [
        f"{subject}: {'passed' if report.passed else 'failed'}{accepted}",
        *([f"{told_not_copied(report.not_copied)}."] if report.not_copied else []),
        *([f"{aborted}."] if aborted else []),
        *(f"finding {name}" for name in report.unaccepted),
        *map(str, report.acceptances),
    ]


def _bridge_line(known: Bridge, result: JobResult) -> str:
    since = _newest(known, result.partitions)
    if known.ended_at_ms and all(p.position >= p.end for p in result.partitions):
        return f"bridge: ended{since}"
    lags = [p.lag for p in result.partitions]
    waiting = lags.count(NO_POSITION)
    begun = f"{sum(lags) - waiting * NO_POSITION:,} offsets behind"
    absent = f"{waiting} of {len(lags)} partitions not begun"
    behind = begun if not waiting else absent if waiting == len(lags) else f"{begun}, {absent}"
    if result.state in AT_WORK:
        return f"bridge: carries on, {behind}{since}"
    why = result.detail if result.state == NOT_AT_WORK else result.state
    return f"bridge: NOT AT WORK ({why}), {behind}; move no producer before `bridged` has returned"


def _newest(known: Bridge, now: Sequence[PartitionProgress]) -> str:
    """Return a remark on when the newest record came in.

    The bridge's last report is up to 30 s old, so the log ends may have moved since. That is why the present ends
    are compared with the reported ones.
    """
    if not known.quiet_since_ms:
        return ""
    if any(p.end != known.ends.get(p.topic, {}).get(p.partition, 0) for p in now):
        return f"; records have come into the old topic since {moment(known.quiet_since_ms)}"
    return f"; no record in the old topic since {moment(known.quiet_since_ms)}"


def _stage_lags(
    control: ControlState, progress: Sequence[PartitionProgress]
) -> list[tuple[str, int, int | None, int]]:
    if control.journal is None:
        return []
    rows = []
    for stage in control.journal.plan.stages:
        sources = {m.source for m in stage.changelogs}
        own = [p for p in progress if p.topic in sources]
        begun = [p.lag for p in own if p.lag != NO_POSITION]
        if own:
            rows.append((stage.name, len(own), max(begun, default=None), len(own) - len(begun)))
    return rows
