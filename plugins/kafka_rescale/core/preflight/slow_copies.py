"""Preflight: will the copies end before they could lack deletions?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.expansion.deletions import NEAR, advised_ms, least_kept
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.values import per_second
from kafka_rescale.core.verify.proof import needs_proof

ASSUMED_BYTES_PER_SECOND = 10_000_000
ASSUMED_RECORDS_PER_SECOND = 10_000
"""A slow copy, for a first expansion whose pace nobody knows: a fifth of what one core was measured to copy."""


def slow_copy_messages(situation: Situation, said: Prediction) -> Iterator[str]:
    """Yield one message if the copies may take so long that they would begin anew before they end.

    :param said: what is predicted for the expansion.
    """
    if not needs_proof(situation.plan):
        return
    present = situation.cluster.topics
    kept = least_kept({m.source: present[m.source] for m in situation.plan.changelogs if m.source in present})
    seconds, how = _expected(said)
    if kept is None or seconds * 1000 <= NEAR * kept[1]:
        return
    topic, kept_ms = kept
    yield (
        f"Deletions: {how}, the copies take some {seconds:,.0f} s, and {topic} keeps deletions for "
        f"{kept_ms / 1000:,.0f} s (delete.retention.ms). A copy that gets older than that begins anew, so it may "
        f"never end. Before the expansion begins, set delete.retention.ms of all changelogs of {situation.blue} "
        f"to at least {advised_ms(seconds)}: see docs/first-expansion.md."
    )


def _expected(said: Prediction) -> tuple[float, str]:
    """Return how long the copies of all stages may take, in seconds, and by which pace."""
    seconds, how = said.copy_seconds or 0.0, "at the pace and the limit above"
    if said.records_per_second is not None:
        return seconds, how
    if said.copied_bytes is not None:
        assumed = said.copied_bytes / ASSUMED_BYTES_PER_SECOND, per_second(ASSUMED_BYTES_PER_SECOND)
    else:
        assumed = (said.records or 0) / ASSUMED_RECORDS_PER_SECOND, f"{ASSUMED_RECORDS_PER_SECOND:,} records/s"
    return max((seconds, how), (assumed[0], f"at {assumed[1]}, as their pace is unknown"))
