"""What brokers must not remove from green's changelogs until verify has passed.

From the cutover on, they keep every record. In place these are the application's own changelogs: they keep every
record from before the first tombstone on.

A pre-warmed green has local state, and restores only what was copied since. For that it needs the last record of
each key, which compaction keeps, and every deletion. A switch may be waited for during weeks. So from the
pre-warming to the cutover, green's changelogs keep their deletions, and are compacted all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.values import moment
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.expansion.rescale import Rescale

KEEP_ALL = str(2**63 - 1)
MIN, MAX, RETENTION = "min.compaction.lag.ms", "max.compaction.lag.ms", "delete.retention.ms"
HELD = (MIN, MAX)
"""Brokers refuse a minimum above the maximum."""
DAY_MS = 24 * 3600 * 1000
KEPT_MS = 30 * DAY_MS + 1
"""How long deletions are kept. Not for good: with its first pass over a deletion, the log cleaner writes into the
batch when it may go (KIP-534), and no later config changes that. And not for 2^63 - 1 ms: the sum of the time now
and of that overflows. Nobody sets 30 days and 1 ms: a topic that has it is held, also by an attempt before."""
KEEP_DELETIONS = str(KEPT_MS)


def hold_compaction(
    rescale: Rescale, journal: Journal, about_to: Callable[[Journal], object] = lambda _: None
) -> Journal:
    """Protect green's changelogs from compaction; the journal keeps the settings that ``finish`` restores.

    :param journal: in phase ``WARMING``; this may have been called before.
    :param about_to: called before each change of a topic, with the journal that keeps the settings.
    :raises Fenced: another run or attempt has gone on; the caller releases what this has held beside it.
    :raises UnsafeState: the attempt is rolled back, or another try has gone on; the caller does the same.
    """
    moves, described = journal.plan.changelogs, _described(rescale, journal)
    kept = [m for m in moves if m.target in described and _keeps_deletions(described[m.target])]
    journal = rescale.advance(
        Phase.WARMING,
        compaction_lags=_before(journal.compaction_lags, MIN, moves, described),
        max_compaction_lags=_before(journal.max_compaction_lags, MAX, moves, described),
        deletion_retentions=_before(journal.deletion_retentions, RETENTION, kept, described),
    )
    for topic in (m.target for m in moves):
        _assert_warming(rescale)
        about_to(journal)
        # The brokers' defaults may also force compaction. A topic's own config overrides them.
        rescale.admin.alter_configs(topic, dict.fromkeys(HELD, KEEP_ALL))
    return journal


def hold_deletions(rescale: Rescale, journal: Journal) -> int:
    """Let green's changelogs keep their deletions while they are compacted. Green has to restore from the start.

    If the switch may be waited for too long for that, they keep every record. If an earlier attempt, or an earlier
    version, has made them keep every record, they are compacted again.

    :param journal: in phase ``WARMING``; this may have been called before.
    :returns: wall clock up to which green can go on with what it restores from now on; 0 for any time.
    """
    if rescale.application.max_wait_seconds * 1000 > KEPT_MS // 2:
        hold_compaction(rescale, journal)
        return 0
    moves, described = journal.plan.changelogs, _described(rescale, journal)
    lags = _before(journal.compaction_lags, MIN, moves, described)
    max_lags = _before(journal.max_compaction_lags, MAX, moves, described)
    journal = rescale.advance(
        Phase.WARMING, deletion_retentions=_before(journal.deletion_retentions, RETENTION, moves, described)
    )
    for topic in (described[m.target] for m in moves):
        changes: dict[str, str | None] = {}
        if _is_held(topic):
            changes = {MIN: lags[topic.name] or None, MAX: max_lags[topic.name] or None}
        kept_ms = SourceRules.of(topic).tombstone_ms
        if kept_ms is not None and kept_ms < KEPT_MS:
            changes[RETENTION] = KEEP_DELETIONS
        _assert_warming(rescale)
        rescale.admin.alter_configs(topic.name, changes)
    return kept_until()


def kept_until() -> int:
    """Return the wall clock in ms up to which green can restore all deletions that come from now on.

    A day is left for the pause and the start.
    """
    return now_ms() + KEPT_MS - DAY_MS


def assert_deletions_kept(journal: Journal) -> None:
    """Refuse local state to which green can't restore all deletions since: their entries would live on there.

    Verify would not notice, because it reads only changelogs.

    :raises UnsafeState: the pre-warming was too long ago.
    """
    until_ms = journal.deletions_kept_until_ms
    if until_ms and now_ms() > until_ms:
        raise UnsafeState(
            f"local state of {journal.plan.green}",
            found=f"what a pre-warming has restored more than {KEPT_MS // DAY_MS - 1} days ago",
            expected=f"a switch before {moment(until_ms)}: deletions that were copied since may be removed by now",
            remedy="Nothing was stopped, and the copies stay. Trigger the expansion again: its pre-warming "
            "deletes the state, and restores anew.",
        )


def release_compaction(rescale: Rescale, journal: Journal) -> None:
    """Restore the earlier settings."""
    # An earlier version did not hold the maximum, and one that pre-warms did not always hold the deletions.
    held = {MIN: journal.compaction_lags, MAX: journal.max_compaction_lags, RETENTION: journal.deletion_retentions}
    for topic in sorted({topic for values in held.values() for topic in values}):
        changes = {config: values[topic] or None for config, values in held.items() if topic in values}
        rescale.admin.alter_configs(topic, changes)


def still_held(rescale: Rescale, journal: Journal) -> Journal:
    """Return a journal with the earlier settings of only those topics that are held at present.

    A process may have held them that woke behind a rollback, and was killed before it let go.

    A topic that is not held may have got other settings since, and a person may have deleted it.

    :param journal: of an attempt that is rolled back.
    """
    held = {t for t, found in rescale.admin.describe_topics(journal.compaction_lags).items() if _is_held(found)}
    noted = {"compaction_lags": journal.compaction_lags, "max_compaction_lags": journal.max_compaction_lags}
    left = {name: {t: lag for t, lag in lags.items() if t in held} for name, lags in noted.items()}
    return journal.model_copy(update=left)


def without_held(
    journal: Journal, topic: str, configs: Mapping[str, str], present: TopicDescription | None
) -> dict[str, str]:
    """Return the configs that may be set on a topic of green now: all configs except those that are held.

    A rollback releases only the application's own topics: local state of a pre-warming relies on every deletion.
    The next attempt's journal doesn't know that green's topics are held, and brokers would refuse a maximum alone.

    :param present: the topic, if it exists.
    """
    held: tuple[str, ...] = ()
    if topic in journal.compaction_lags or (present is not None and _is_held(present)):
        held += HELD
    if topic in journal.deletion_retentions or (present is not None and _keeps_deletions(present)):
        held += (RETENTION,)
    return {config: value for config, value in configs.items() if config not in held}


def _assert_warming(rescale: Rescale) -> None:
    """Check right before a change that nobody has ended this attempt, or has gone on with it, meanwhile."""
    rescale.journal().advanced(Phase.WARMING, now_ms=now_ms())


def _described(rescale: Rescale, journal: Journal) -> Mapping[str, TopicDescription]:
    return rescale.admin.existing_topics([t for m in journal.plan.changelogs for t in (m.source, m.target)])


def _before(
    known: Mapping[str, str], config: str, moves: Iterable[Move], described: Mapping[str, TopicDescription]
) -> dict[str, str]:
    """Return the override of each topic of green before it was held; an empty string stands for none.

    :param known: what the journal has noted about it.
    """
    found = known or {m.target: _own(m, described, config) for m in moves if m.target in described}
    return {t: "" if v == KEEP_ALL else v for t, v in found.items()}


def _is_held(topic: TopicDescription) -> bool:
    return topic.overrides.get(MIN) == KEEP_ALL


def _keeps_deletions(topic: TopicDescription) -> bool:
    return topic.overrides.get(RETENTION) == KEEP_DELETIONS


def _own(move: Move, described: Mapping[str, TopicDescription], config: str) -> str:
    """Return an override of a changelog of green; if it is held already, the override of blue's changelog."""
    target = described[move.target]
    is_held = _keeps_deletions(target) if config == RETENTION else _is_held(target)
    known = described.get(move.source) if is_held else target
    return known.overrides.get(config, "") if known is not None else ""
