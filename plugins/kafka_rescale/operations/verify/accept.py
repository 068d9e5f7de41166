"""A person accepts findings of a proof or of verify, so that the expansion can go on or end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.acceptances import LOST, Acceptance, Acceptances, OffsetRange
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.expansion.late_writes import late_writes, lost_changelogs
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.core.verify.report import Report, is_about
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.misrouted import look_at_range, look_for_misrouted
from kafka_rescale.operations.expansion.survivors import present_ends

log = logging.getLogger(__name__)


def accept(
    application: Application, connection: KafkaConnection, *, findings: Sequence[str], by: str, reason: str
) -> tuple[Acceptance, ...]:
    """Record that a person has accepted findings; from then on proofs and verify report them as accepted.

    This changes nothing else: tasks that failed because of the findings have to run again.

    :param findings: their names, as verify and the callback report them; all are accepted, or none.
    :param by: the person who accepts them.
    :param reason: why that is right, for the readers of the report.
    :returns: one acceptance for each finding; earlier acceptances stay as they were.
    :raises InvalidInput: no finding or no reason is given.
    :raises Refused: there is nothing to verify, or a finding does not agree with the brokers.
    """
    _assert_said(findings, reason)
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    journal = _to_be_verified(application, state)
    said = {"plan": journal.plan.fingerprint, "by": by, "at_ms": now_ms(), "reason": reason.strip()}
    accepted = [
        Acceptance.model_validate(
            {**said, "finding": each, "records": _looked_at(connection, state, journal, each)}
        )
        for each in findings
    ]

    def change(present: ControlState) -> Mapping[str, Acceptances]:
        _to_be_verified(application, present)
        known = present.acceptances
        new = [a for a in accepted if a.finding not in known.of(a.plan)]
        return {Concern.ACCEPTANCES: Acceptances(accepted=(*known.accepted, *new))} if new else {}

    written = control.update(change).acceptances.of(journal.plan.fingerprint)
    found = tuple(written[each] for each in findings)
    for each in found:
        log.info("%s", each)
    return found


def next_step(application: Application, connection: KafkaConnection) -> str:
    """Return how a person lets go on what has failed because of findings that are accepted now."""
    journal = ControlTopic(connection, application.application_id).read().journal
    if journal is not None and journal.is_promoted:
        return "Now clear the failed task: verify or callback."
    return (
        "If the run has failed, trigger the expansion again: its attempt is closed, and the next one proves anew."
    )


def _assert_said(findings: Sequence[str], reason: str) -> None:
    if not findings or not reason.strip():
        raise InvalidInput(
            "acceptance",
            found="no reason" if findings else "no finding",
            expected="at least one finding, and why it may be accepted",
            remedy="Give both: the finding as verify reports it, and the reason in a sentence.",
        )


def _to_be_verified(application: Application, state: ControlState) -> Journal:
    journal = state.journal
    has_proof = journal is not None and not journal.is_promoted and is_of(state.proof, journal)
    if journal is None or not (has_proof or journal.phase is Phase.STARTED):
        raise Refused(
            f"application {application.application_id!r}",
            found="no expansion" if journal is None else f"an expansion in phase {journal.told}",
            expected=f"a proof with findings, or phase {Phase.STARTED} and a verification with findings",
            remedy="Accept what prove or verify reports, when it has reported it.",
        )
    return journal


def _looked_at(connection: KafkaConnection, state: ControlState, journal: Journal, finding: str) -> int:
    """Return how many misrouted records, offsets or violations a finding has.

    Misrouted records are looked up on the brokers: the first and the last record of the range must be misrouted. A
    range of blue's late writes must end where its log ends. So a person can't accept records that have not been
    written yet. A changelog of blue must be lost now. A comparison, or records that green has lost in aborted
    transactions, must be in the last proof or report.
    """
    admin = ClusterAdmin(connection)
    within = OffsetRange.parse(finding) if journal.is_promoted else None
    compared = _compared(state, journal)
    # In place, a range of lost records would also be one of late writes.
    if finding in compared:
        return compared[finding]
    if within is not None and journal.captured and within.topic in journal.captured.changelog_ends:
        late = late_writes(journal, present_ends(admin, [within.topic]))
        if within in late:
            return within.last - within.first + 1
        present = [str(each) for each in late]
    elif within is not None:
        looked = look_at_range(connection, journal, within)
        if looked is not None and looked.findings == (within,):
            return looked.misrouted
        inputs = look_for_misrouted(connection, journal, state.acceptances)
        present = [str(each) for i in inputs for each in i.findings]
    elif journal.is_promoted and finding.startswith(LOST):
        lost = _lost(admin, journal)
        if finding in lost:
            return lost[finding]
        present = list(lost)
    else:
        present = list(compared)
    raise Refused(
        f"finding {finding}",
        found=f"only {', '.join(present)}" if present else "no finding of this kind",
        expected="a finding by exactly this name",
        remedy="Copy the name from the log of prove, verify or callback, and accept what you have dealt with. "
        "Records that retention has deleted need no acceptance.",
    )


def _lost(admin: ClusterAdmin, journal: Journal) -> dict[str, int]:
    captured = journal.captured.changelog_ends if journal.captured else {}
    return lost_changelogs(journal, present_ends(admin, captured))


def _compared(state: ControlState, journal: Journal) -> dict[str, int]:
    if not journal.is_promoted:
        proof, rolling = Proof.model_validate(state.proof), RollingProof.of_record(state.rolling_proof, journal)
        return {**proof.compared, **(rolling.compared if rolling else {})}
    if not is_about(state.report, journal):
        return {}
    return Report.model_validate(state.report).compared
