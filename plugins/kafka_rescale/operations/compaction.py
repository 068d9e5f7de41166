"""Green's changelogs keep every record from the first step that relies on it until verify has passed.

In place these are the application's own; from before the first tombstone on, nothing of what it cleans may go.
"""

from __future__ import annotations

from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.operations.rescale import Rescale

KEEP_ALL = str(2**63 - 1)


def hold_compaction(rescale: Rescale, journal: Journal) -> Journal:
    """Protect green's changelogs from compaction, and keep in the journal what ``finish`` is to put back.

    :param journal: in phase ``WARMING``; may have been here before.
    """
    changelogs = [m.target for m in journal.plan.changelogs]
    described = rescale.admin.describe_topics(changelogs)
    before = journal.compaction_lags or {
        t: d.overrides.get("min.compaction.lag.ms", "") for t, d in described.items()
    }
    journal = rescale.advance(
        Phase.WARMING, compaction_lags={t: "" if v == KEEP_ALL else v for t, v in before.items()}
    )
    for topic in changelogs:
        rescale.admin.alter_configs(topic, {"min.compaction.lag.ms": KEEP_ALL})
    return journal


def release_compaction(rescale: Rescale, journal: Journal) -> None:
    """Put back what was there before."""
    for topic, value in journal.compaction_lags.items():
        rescale.admin.alter_configs(topic, {"min.compaction.lag.ms": value or None})
