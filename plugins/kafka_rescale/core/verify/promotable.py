"""Whether a promotion may rely on what was compared.

All that blue has written has to be compared: up to a fence by the proof, and from there on by the rolling proof.
Once blue is stopped, the rolling proof has to reach its last record. And green's topics must still be those that
were compared. A topic that was made anew has another id. A copy that was begun anew has been emptied first, so its
log starts behind everything that was compared. Where retention may do the same, the copy's mark tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.changelog_formats import Content, format_of
from kafka_rescale.core.verify.proof import CopiesCompared, Proof, needs_proof
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof


def required_proofs(journal: Journal, state: ControlState) -> tuple[Proof, RollingProof] | None:
    """Return what a promotion relies on; None if there are no copies.

    Before blue is stopped, the rolling proof may end anywhere behind the proof.

    :param state: what the control topic has.
    :raises UnsafeState: something has not been compared, or has findings that nobody has accepted.
    """
    if not needs_proof(journal.plan):
        return None
    proof = assert_proof(journal, state)
    rolling = RollingProof.of_record(state.rolling_proof, journal)
    if rolling is None:
        raise _unproven(journal, "no comparison of what was written since the proof")
    if not rolling.continues(proof.fences.fence):
        raise _unproven(journal, f"a comparison that has begun behind the proof of {proof.until}")
    assert_no_findings(rolling, state.acceptances)
    if journal.captured is not None and not rolling.has_reached(journal.captured.changelog_ends):
        raise _unproven(journal, f"what blue has written last is not compared: {rolling.told}")
    return proof, rolling


def compared_before(
    journal: Journal,
    state: ControlState,
    present: Mapping[str, str],
    begins: PartitionOffsets,
    restarts: Mapping[str, int],
) -> dict[str, StoreReport]:
    """Return the reports of the stores that were compared as a whole before the promotion, by name.

    If blue goes on writing a key, the proof and each stretch behind it leave the key to the next stretch, which
    has only its records since. In a versioned store, earlier versions of such a key count as well, and nothing
    tells whether there was such a key. So this leaves out versioned stores. If green has lost what was compared,
    it leaves out all stores.

    :param present: ids of green's topics now.
    :param begins: log starts of green's topics now.
    :param restarts: when their copies were last begun anew; see ``Fences.lost``.
    """
    try:
        proofs = required_proofs(journal, state)
    except UnsafeState:
        return {}
    if proofs is None or proofs[1].violations or any(p.fences.lost(present, begins, restarts) for p in proofs):
        return {}
    versioned = {
        m.store
        for m in journal.plan.changelogs
        if format_of(m.store_type, m.partitioning_key).has(Content.VERSIONS)
    }
    return {s.store: s for s in proofs[0].stores if s.store not in versioned}


def assert_proof(journal: Journal, state: ControlState) -> Proof:
    """Return the proof of the whole state.

    :raises UnsafeState: there is no proof of these copies, or it has findings.
    """
    proof = Proof.model_validate(state.proof) if state.proof else None
    if proof is None:
        raise _unproven(journal, "no proof of the copies")
    if proof.plan != journal.plan.fingerprint:
        raise _unproven(journal, f"a proof of another plan ({proof.plan})")
    if proof.attempt != journal.attempt:
        raise _unproven(journal, f"a proof of attempt {proof.attempt}")
    if not proof.passed:
        raise _unproven(journal, f"a proof with {proof.violations:,} violations")
    return proof


def assert_no_findings(rolling: RollingProof, acceptances: Acceptances) -> None:
    """Refuse a rolling proof with findings that nobody has accepted.

    :raises UnsafeState: there are such findings.
    """
    if unaccepted := rolling.unaccepted(acceptances):
        raise rolling.refused(unaccepted)


def assert_same_topics(
    journal: Journal,
    proofs: Iterable[CopiesCompared],
    present: Mapping[str, str],
    begins: PartitionOffsets,
    restarts: Mapping[str, int],
) -> None:
    """Check that green's topics still have what was compared.

    :param present: ids of green's topics now.
    :param begins: log starts of green's topics now.
    :param restarts: when their copies were last begun anew; see ``Fences.lost``.
    :raises UnsafeState: a topic was made anew or emptied since, or has lost records that compaction can't remove.
    """
    for proof in proofs:
        if lost := proof.fences.lost(present, begins, restarts):
            raise _unproven(journal, f"a proof of copies that are gone: {lost}")


def proven_until(state: ControlState, journal: Journal) -> RollingProof | None:
    """Return the rolling proof that continues this attempt's proof; None if either of the two is missing."""
    proof = Proof.of_record(state.proof, journal)
    rolling = RollingProof.of_record(state.rolling_proof, journal)
    if proof is None or rolling is None or not rolling.continues(proof.fences.fence):
        return None
    return rolling


def _unproven(journal: Journal, found: str) -> UnsafeState:
    return UnsafeState(
        f"promotion of {journal.plan.green}",
        found=found,
        expected=f"a proof that has passed, of plan {journal.plan.fingerprint} and attempt {journal.attempt}, "
        "continued up to blue's last record",
        remedy="Trigger the expansion again: it goes on with the copies that exist, and its prove task compares "
        "them.",
    )
