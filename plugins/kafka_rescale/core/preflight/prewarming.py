"""Preflight: what pre-warming takes under the streams protocol, where each instance restores everything."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.disk import sizes_by_topic
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.values import size


def prewarmed_by_a_person(situation: Situation) -> Iterator[Finding]:
    """Yield a pre-warming that could never end: a person would be asked for it again and again.

    A ``manual`` lifecycle learns only from the next generation's group that the person has started it. With the
    streams protocol, instances behind the gate never join that group.
    """
    lifecycle = situation.application.lifecycle
    if lifecycle.type != "manual" or lifecycle.start_gated is None or not _restores_everything(situation):
        return
    yield Finding(
        f"application {situation.application.application_id!r}",
        "`start_gated` with `type: manual`, and the streams protocol",
        f"a lifecycle that can tell whether instances run which are not in group {situation.green}",
        "Remove `start_gated`: the next generation then restores its stores within the pause. To pre-warm it, "
        "declare a lifecycle of `type: shell` or `type: python`.",
    )


def _restores_everything(situation: Situation) -> bool:
    """Return whether each instance would restore all stores behind the gate, in a group of its own."""
    plan = situation.plan
    return not plan.is_in_place and bool(plan.changelogs) and situation.cluster.group.protocol == "streams"


def prewarming_messages(situation: Situation) -> Iterator[str]:
    """Yield what the instances' disks have to hold, if an application of the streams protocol is pre-warmed."""
    group, plan, lifecycle = situation.cluster.group, situation.plan, situation.application.lifecycle
    # Whether a user's class has the method is known only when it is loaded.
    if not _restores_everything(situation):
        return
    if lifecycle.type != "python" and lifecycle.start_gated is None:
        return
    sizes = sizes_by_topic(situation.cluster.disks)
    known = [sizes[move.source] for move in plan.changelogs if move.source in sizes]
    state = f", {size(sum(known))} of changelogs now" if len(known) == len(plan.changelogs) else ""
    beside = f" of its {group.processes} instances" if group.processes > 1 else ""
    yield (
        f"{situation.green}: `start_gated` has to set group.protocol=classic, and each{beside} restores the "
        f"stores of all tasks{state}. The brokers assign tasks of the streams protocol without regard to local "
        "state. So each instance needs room for the whole state, on its disk and in the memory of its RocksDB. "
        "Kafka Streams deletes what it has no task for after state.cleanup.delay.ms (10 minutes by default)."
    )
