"""No promotion without a proof of the whole state."""

from __future__ import annotations

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.verify.proof import assert_same_topics, required_proof
from kafka_rescale.operations.expansion.rescale import Rescale


def assert_proven(rescale: Rescale, journal: Journal) -> None:
    """Check that there is a proof, and that green's topics still have what it has compared.

    The promotion's own transaction asks again for the proof: see ``Cutover``.

    :raises UnsafeState: the promotion would be of copies that are not proven.
    """
    proof = required_proof(journal, rescale.control.read().proof)
    if proof is None:
        return
    topics = list(proof.fences.green_topics)
    present = {topic: of.topic_id for topic, of in rescale.admin.describe_topics(topics).items()}
    assert_same_topics(journal, proof, present, rescale.admin.begin_offsets(present))
