"""Green's changelogs keep every record from the first step that relies on it until verify has passed.

In place these are the application's own changelogs. They keep every record from before the first tombstone on.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.operations.expansion.rescale import Rescale

KEEP_ALL = str(2**63 - 1)
MIN, MAX = "min.compaction.lag.ms", "max.compaction.lag.ms"
HELD = (MIN, MAX)
"""Brokers refuse a minimum above the maximum."""


def hold_compaction(rescale: Rescale, journal: Journal) -> Journal:
    """Protect green's changelogs from compaction; the journal keeps the settings that ``finish`` restores.

    :param journal: in phase ``WARMING``; this may have been called before.
    """
    moves = journal.plan.changelogs
    described = rescale.admin.existing_topics([t for m in moves for t in (m.source, m.target)])

    def before(known: Mapping[str, str], config: str) -> dict[str, str]:
        found = known or {m.target: _own(m, described).get(config, "") for m in moves if m.target in described}
        return {t: "" if v == KEEP_ALL else v for t, v in found.items()}

    journal = rescale.advance(
        Phase.WARMING,
        compaction_lags=before(journal.compaction_lags, MIN),
        max_compaction_lags=before(journal.max_compaction_lags, MAX),
    )
    for topic in (m.target for m in moves):
        # The brokers' defaults may also force compaction. A topic's own config overrides them.
        rescale.admin.alter_configs(topic, dict.fromkeys(HELD, KEEP_ALL))
    return journal


def release_compaction(rescale: Rescale, journal: Journal) -> None:
    """Restore the earlier settings."""
    for topic, value in journal.compaction_lags.items():
        changes = {MIN: value or None}
        if topic in journal.max_compaction_lags:  # an earlier version did not hold the maximum
            changes[MAX] = journal.max_compaction_lags[topic] or None
        rescale.admin.alter_configs(topic, changes)


def without_held(
    journal: Journal, topic: str, configs: Mapping[str, str], present: TopicDescription | None
) -> dict[str, str]:
    """Return the configs that may be set on a topic of green now: all configs except those that are held.

    A rollback releases only the application's own topics: local state of a pre-warming relies on every deletion.
    The next attempt's journal doesn't know that green's topics are held, and brokers would refuse a maximum alone.

    :param present: the topic, if it exists.
    """
    held = HELD if topic in journal.compaction_lags or (present is not None and _is_held(present)) else ()
    return {config: value for config, value in configs.items() if config not in held}


def _is_held(topic: TopicDescription) -> bool:
    return topic.overrides.get(MIN) == KEEP_ALL


def _own(move: Move, described: Mapping[str, TopicDescription]) -> Mapping[str, str]:
    """Return the overrides of a changelog of green; if it is held already, the overrides of blue's changelog."""
    target = described[move.target]
    return described.get(move.source, target).overrides if _is_held(target) else target.overrides
