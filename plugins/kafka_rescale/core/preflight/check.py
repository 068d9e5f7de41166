"""Every reason not to begin, found at once and before anything is touched."""

from __future__ import annotations

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.expansion.callback import callback_findings
from kafka_rescale.core.preflight.bridge import (
    bridge_messages,
    successor_times,
    successor_topics,
    unfinished_bridge,
)
from kafka_rescale.core.preflight.counts import (
    changelog_counts,
    copartitioned,
    counts_of_start_command,
    derived_repartitions,
    reachable_target,
    shrinking_inputs,
)
from kafka_rescale.core.preflight.deployment import implausible, standstill
from kafka_rescale.core.preflight.disk import disk_messages, disk_space
from kafka_rescale.core.preflight.formats import (
    foreign_key_joins,
    grace_buffers,
    proven_contents,
    store_key_shapes,
    versioned_stores,
)
from kafka_rescale.core.preflight.grown import grown_inputs
from kafka_rescale.core.preflight.in_place import (
    conflicting_mode,
    grown_by_hand_in_place,
    shrinking_in_place,
    streams_protocol_in_place,
)
from kafka_rescale.core.preflight.keys import (
    empty_key_messages,
    history_messages,
    misplaced_keys,
    null_key_messages,
    null_keys,
)
from kafka_rescale.core.preflight.lost_control import unknown_generations
from kafka_rescale.core.preflight.one_partition import framed_keys, unchecked_declarations, windowed_keys
from kafka_rescale.core.preflight.other_readers import endangered_readers, reader_messages, unknown_readers
from kafka_rescale.core.preflight.partitioners import future_placement, one_partitioner
from kafka_rescale.core.preflight.patterns import patterns_of_others, topics_of_patterns
from kafka_rescale.core.preflight.prewarming import prewarmed_by_a_person, prewarming_messages
from kafka_rescale.core.preflight.requests import lost_record_messages, transaction_messages, unknown_requests
from kafka_rescale.core.preflight.running import (
    conflicting_target,
    lag_messages,
    running_as_expected,
    unheld_inputs,
)
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.preflight.targets import (
    absent_times,
    compression_messages,
    countable_partitions,
    kept_times,
    long_names,
    refused_records,
    targets_as_found,
)
from kafka_rescale.core.preflight.topics import (
    denied_changelogs,
    green_names,
    missing_topics,
    replicas,
    retention_warnings,
    store_types,
    unlogged_messages,
)
from kafka_rescale.core.preflight.undecided import maybe_enforced, maybe_told, undecided_counts
from kafka_rescale.core.preflight.undeclared import undeclared_inputs, undeclared_messages
from kafka_rescale.core.preflight.unexplained import unexplained_topics


def is_continued(situation: Situation) -> bool:
    """Return whether an expansion to the same target is in progress: then its own plan goes on."""
    journal = situation.control.journal
    return journal is not None and journal.in_progress and journal.plan.partitions == situation.target


def check(situation: Situation) -> list[Finding]:
    """Return every finding; without a finding, the expansion may begin.

    Most checks are left out for an expansion that is continued: it was checked when it began, and its own steps
    have changed counts and topics since.
    """
    if lost := list(unknown_generations(situation)):
        return lost
    findings = [
        *conflicting_target(situation),
        *conflicting_mode(situation),
        *running_as_expected(situation),
        *implausible(situation.deployment, situation.blue, situation.green),
        *streams_protocol_in_place(situation),
        *topics_of_patterns(situation),
    ]
    findings += callback_findings(situation.application)
    if situation.control.journal is not None and situation.control.journal.in_progress:
        return findings
    missing = list(missing_topics(situation, situation.visible))
    findings += [
        *missing,
        *unexplained_topics(situation),
        *undeclared_inputs(situation),
        *denied_changelogs(situation),
        *store_types(situation),
        *versioned_stores(situation),
    ]
    findings += [
        *kept_times(situation),
        *absent_times(situation),
        *replicas(situation),
        *successor_times(situation),
    ]
    joins = [] if missing else list(foreign_key_joins(situation))
    findings += [*grace_buffers(situation), *joins]
    if not missing and not joins:
        findings += _counts(situation)
    findings += [*null_keys(situation), *store_key_shapes(situation), *proven_contents(situation)]
    findings += windowed_keys(situation)
    if joins:
        return findings
    return [*findings, *misplaced_keys(situation)] or _partitioners(situation)


def _counts(situation: Situation) -> list[Finding]:
    """Return findings that need every topic's count, or the plan.

    The target is checked only if present counts make sense.
    """
    present = [*grown_inputs(situation), *grown_by_hand_in_place(situation), *derived_repartitions(situation)]
    present += [*counts_of_start_command(situation), *copartitioned(situation), *changelog_counts(situation)]
    shrinking = list(shrinking_inputs(situation))
    if present or shrinking:
        return present + shrinking
    return [
        *undecided_counts(situation),
        *endangered_readers(situation),
        *unknown_readers(situation),
        *framed_keys(situation),
        *reachable_target(situation),
        *shrinking_in_place(situation),
        *countable_partitions(situation),
        *long_names(situation),
        *green_names(situation),
        *prewarmed_by_a_person(situation),
        *successor_topics(situation),
        *patterns_of_others(situation),
        *targets_as_found(situation),
        *refused_records(situation),
        *disk_space(situation),
        *unknown_requests(situation),
        *unfinished_bridge(situation),
    ]


def _partitioners(situation: Situation) -> list[Finding]:
    """Return findings that make sense only if the declared partitioners have placed the present keys."""
    return list(one_partitioner(situation)) or list(future_placement(situation))


def messages(situation: Situation) -> list[str]:
    """Return what a person should know, although it does not hinder the expansion."""
    return [
        *maybe_enforced(situation),
        *maybe_told(situation),
        *bridge_messages(situation),
        *lag_messages(situation),
        *unheld_inputs(situation),
        *undeclared_messages(situation),
        *reader_messages(situation),
        *prewarming_messages(situation),
        *unlogged_messages(situation),
        *retention_warnings(situation),
        *compression_messages(situation),
        *history_messages(situation),
        *null_key_messages(situation),
        *empty_key_messages(situation),
        *unchecked_declarations(situation),
        *disk_messages(situation),
        *transaction_messages(situation),
        *lost_record_messages(situation),
        *standstill(situation.deployment, situation.blue),
    ]
