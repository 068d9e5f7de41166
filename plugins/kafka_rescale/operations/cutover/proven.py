"""No promotion without a proof of the whole state."""

from __future__ import annotations

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.verify.proof import assert_same_topics, required_proof
from kafka_rescale.kafka.copy.fences import topics_now
from kafka_rescale.operations.expansion.rescale import Rescale


def assert_proven(rescale: Rescale, journal: Journal) -> None:
    """Check that there is a proof, and that green's topics still have what it has compared.

    The promotion's own transaction asks again for the proof: see ``Cutover``.

    :raises UnsafeState: the promotion would be of copies that are not proven.
    """
    proof = required_proof(journal, rescale.control.read().proof)
    if proof is None:
        return
    assert_same_topics(journal, proof, *topics_now(rescale.admin, proof.fences.green_topics))
