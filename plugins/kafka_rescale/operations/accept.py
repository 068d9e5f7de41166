"""A person accepts misrouted records that verify has found, so that the expansion can be brought to its end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_rescale.core.acceptance import Acceptance, Acceptances, FindingId
from kafka_rescale.core.application import Application
from kafka_rescale.core.control_records import Concern, ControlState
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.misrouted import look_at_finding, look_for_misrouted
from kafka_rescale.kafka.waiting import now_ms

log = logging.getLogger(__name__)


def accept(
    application: Application, connection: KafkaConnection, *, findings: Sequence[str], by: str, reason: str
) -> tuple[Acceptance, ...]:
    """Write down that misrouted records are known and seen to; verify reports them as accepted from then on.

    Nothing else is changed: what fails because of them has to be run again.

    :param findings: their names, as verify and the callback report them; all are accepted or none.
    :param by: who accepts them.
    :param reason: why that is right, for whoever reads the report.
    :returns: one for each finding; what was accepted before stays as it was.
    :raises InvalidInput: no finding, none of that name's form, or no reason.
    :raises Refused: nothing is to be verified, or a finding is not what lies on the brokers.
    """
    wanted = [FindingId.parse(each) for each in findings]
    if not wanted or not reason.strip():
        raise InvalidInput(
            "acceptance",
            found="no reason" if wanted else "no finding",
            expected="at least one finding, and why it may be accepted",
            remedy="Give both: --finding as verify reports it, --reason in a sentence.",
        )
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    journal = _to_be_verified(application, state)
    looked = [_looked_at(connection, journal, state.acceptances, finding) for finding in wanted]
    said = {"plan": journal.plan.fingerprint, "by": by, "at_ms": now_ms(), "reason": reason.strip()}
    accepted = tuple(
        Acceptance.model_validate({**said, **finding._asdict(), "records": records})
        for finding, records in zip(wanted, looked, strict=True)
    )

    def change(present: ControlState) -> Mapping[str, Acceptances]:
        _to_be_verified(application, present)
        known = present.acceptances.accepted
        new = [a for a in accepted if not _known(a, known)]
        return {Concern.ACCEPTANCES: Acceptances(accepted=(*known, *new))} if new else {}

    written = control.update(change).acceptances.accepted
    found = tuple(known for a in accepted if (known := _known(a, written)) is not None)
    for each in found:
        log.info("%s", each)
    return found


def _to_be_verified(application: Application, state: ControlState) -> Journal:
    journal = state.journal
    if journal is None or journal.phase is not Phase.STARTED:
        raise Refused(
            f"application {application.application_id!r}",
            found="no expansion" if journal is None else f"an expansion in phase {journal.told}",
            expected=f"one in phase {Phase.STARTED}, whose verification has findings",
            remedy="Accept what verify reports, when it has reported it.",
        )
    return journal


def _looked_at(connection: KafkaConnection, journal: Journal, known: Acceptances, finding: FindingId) -> int:
    """Return how many misrouted records a finding has; it has to begin and end with one.

    So nobody can accept what has not been written yet, nor records that nobody has found.
    """
    report = look_at_finding(connection, journal, finding)
    if report is not None and report.findings == (finding,):
        return report.misrouted
    present = [str(f) for each in look_for_misrouted(connection, journal, known) for f in each.findings]
    raise Refused(
        f"finding {finding}",
        found=f"misrouted records {', '.join(present)}" if present else "no misrouted records",
        expected="misrouted records that begin and end at these offsets",
        remedy="Accept what is there, if you have seen to it. What retention has deleted needs no acceptance.",
    )


def _known(wanted: Acceptance, known: Sequence[Acceptance]) -> Acceptance | None:
    same = (a for a in known if (a.plan, a.finding) == (wanted.plan, wanted.finding))
    return next(same, None)
