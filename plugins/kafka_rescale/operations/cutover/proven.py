"""No promotion without a proof of the whole state, continued up to blue's last record."""

from __future__ import annotations

from typing import NamedTuple

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.verify.promotable import (
    assert_no_findings,
    assert_proof,
    assert_same_topics,
    proven_until,
    required_proofs,
)
from kafka_rescale.core.verify.proof import needs_proof
from kafka_rescale.core.verify.rolling_proof import RollingProof, compared_by
from kafka_rescale.kafka.client.waiting import wait_until
from kafka_rescale.kafka.copy.fences import green_now, restarts_now, topic_ids
from kafka_rescale.operations.expansion.rescale import Rescale

NEAR_SECONDS = 30.0
"""How old the rolling proof may be when blue is stopped. What was written since is compared within the pause."""
WAITED_SECONDS = 600.0


def assert_begun(rescale: Rescale, journal: Journal) -> None:
    """Check before anything else that there is a proof of the whole state. The rolling proof may still be to come.

    :raises UnsafeState: the promotion would be of copies that are not proven.
    """
    if needs_proof(journal.plan):
        proof = assert_proof(journal, rescale.control.read())
        assert_same_topics(journal, [proof], *green_now(rescale.admin, journal.plan))


def await_near_proof(rescale: Rescale, journal: Journal) -> None:
    """Wait until the comparison has come near the ends, so that little is left to compare within the pause.

    How old it is, the job's own clock tells, because its driver may be on a machine whose clock differs from this
    one's. What is there at the first look may be of a driver that has died. So a try of the job has to report once
    more, and has to have compared by itself.

    :raises UnsafeState: the comparison has found something.
    :raises Outage: the job that copies does not compare fast enough.
    """
    if not needs_proof(journal.plan):
        return

    first: _Report | None = None

    def is_near() -> bool:
        nonlocal first
        state = rescale.control.read()
        rolling = proven_until(state, journal)
        if rolling is None:
            return False
        assert_no_findings(rolling, state.acceptances)
        report = _reported(state)
        if report is None or first is None or report.by != first.by:
            first = report
            return False
        # A driver of an earlier version goes on behind an upgrade, and names nobody.
        is_its_own = rolling.by in {"", report.by} and report.at_ms != first.at_ms
        return is_its_own and report.at_ms - rolling.fences.as_of_ms < NEAR_SECONDS * 1000

    wait_until(
        is_near,
        seconds=WAITED_SECONDS,
        what=f"the catch_up job to compare what {journal.plan.blue} has written up to {NEAR_SECONDS:.0f} s ago",
        remedy="Look at the log of the catch_up task, which says what hinders it.",
        longest_pause=1.0,
    )


class _Report(NamedTuple):
    """What the job that compares has reported last.

    :param by: the try of the job.
    :param at_ms: when it has reported, by its own clock.
    """

    by: str
    at_ms: int


def _reported(state: ControlState) -> _Report | None:
    """Return the last report; None if the present try has not reported a lag yet."""
    result = state.results.get("catch_up")
    if result is None or not result.lags.samples:
        return None
    return _Report(compared_by(result.run, result.attempt), result.lags.samples[-1].at_ms)


def assert_proven(rescale: Rescale, journal: Journal, begins: PartitionOffsets) -> RollingProof | None:
    """Check that everything is compared, and that green's topics still have it.

    The promotion's own transaction asks again for the proofs: see ``Cutover``.

    :param begins: log starts of green's topics now.
    :returns: the proof of what was compared last; None if the expansion needs no proof.
    :raises UnsafeState: the promotion would be of copies that are not proven.
    """
    if (proofs := required_proofs(journal, rescale.control.read())) is None:
        return None
    topics = {topic for proof in proofs for topic in proof.fences.green_topics}
    # Within the pause, a broker is asked only if it may make a difference.
    is_needed = any(proof.fences.green_restarts for proof in proofs)
    restarts = restarts_now(rescale.admin, journal.plan) if is_needed else {}
    assert_same_topics(journal, proofs, topic_ids(rescale.admin, topics), begins, restarts)
    return proofs[1]
