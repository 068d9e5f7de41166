"""Proofs that a promotion may rely on, as values."""

from __future__ import annotations

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.rolling_proof import RollingProof

GREEN_END = 5


def topic_id(topic: str) -> str:
    """The id that a topic of green had when it was proven."""
    return f"id of {topic}"


def fences_of(journal: Journal) -> Fences:
    """Fences in which every position is 3, and every partition of green ends at ``GREEN_END``."""
    moves = journal.plan.changelogs
    blue = {m.source: dict.fromkeys(range(m.source_partitions), 3) for m in moves}
    green = {m.target: dict.fromkeys(range(m.target_partitions), GREEN_END) for m in moves}
    return Fences(
        begun=blue,
        green_begun=green,
        fence=blue,
        green_ends=green,
        green_begins={topic: dict.fromkeys(of, 0) for topic, of in green.items()},
        green_topics={topic: topic_id(topic) for topic in green},
        blue_ends=blue,
        as_of_ms=1_700_000_000_000,
        copied_as_of_ms=dict.fromkeys(blue, 0),
    )


def proof_of(journal: Journal) -> Proof:
    """A passed proof for a journal's plan and attempt."""
    return Proof(
        application=journal.plan.application,
        plan=journal.plan.fingerprint,
        attempt=journal.attempt,
        passed=True,
        seconds=1.0,
        fences=fences_of(journal),
    )


def rolling_of(journal: Journal) -> RollingProof:
    """A rolling proof that continues this proof. If blue was stopped, it goes up to the captured ends."""
    fences = fences_of(journal)
    if journal.captured is not None:
        fences = fences.model_copy(update={"fence": journal.captured.changelog_ends})
    begun = RollingProof.begun(journal, fences_of(journal))
    return begun.extended(fences, (), 1.0, is_complete=journal.captured is not None)


def proven(journal: Journal, **changes: object) -> ControlState:
    """The control state when both proofs exist."""
    records = {"proof": proof_of(journal), "rolling_proof": rolling_of(journal)}
    return ControlState(
        journal=journal, **{name: record.model_dump(mode="json") for name, record in records.items()}
    ).model_copy(update=changes)
