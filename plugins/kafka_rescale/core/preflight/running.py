"""Preflight: does the application run as expected, is another expansion in progress, and how large is the lag?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.situation import Situation, counted


def conflicting_target(situation: Situation) -> Iterator[Finding]:
    """Yield an expansion in progress that has another target."""
    journal = situation.control.journal
    if journal is not None and journal.in_progress and journal.plan.partitions != situation.target:
        yield Finding(
            f"application {situation.application.application_id!r}",
            f"an expansion to {journal.plan.partitions} partitions in progress (phase {journal.told}, by "
            f"{journal.owner or 'nobody'})",
            f"no expansion in progress when {situation.target} are asked for",
            journal.way_on,
        )


def running_as_expected(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if the group has members although none are expected, or the other way round."""
    group, journal = situation.cluster.group, situation.control.journal
    if journal is not None and journal.in_progress:
        return
    if situation.expected is ExpectedState.RUNNING and not group.is_live:
        yield Finding(
            f"application {situation.blue!r}",
            f"group {group.group_id} without members (state {group.state})",
            "a running application",
            "Start it, and wait until its group is Stable.",
        )
    if situation.expected is ExpectedState.STOPPED and group.is_live:
        yield Finding(
            f"application {situation.blue!r}",
            f"{counted(len(group.members), 'member')} in group {group.group_id} (state {group.state})",
            "a stopped application",
            "Stop every instance; members that died are gone after session.timeout.ms.",
        )


def lag_messages(situation: Situation) -> Iterator[str]:
    """Yield messages about the running generation: whether it runs, and its lag."""
    group = situation.cluster.group
    # If the deployment says that blue is stopped, another message tells it (``standstill``).
    is_told = situation.deployment.blue_runs is False
    if not group.is_live and situation.expected is ExpectedState.EITHER and not is_told:
        yield f"{situation.blue} does not run: its group has no member (state {group.state})."
    for topic in sorted(situation.topology.repartitions):
        name = situation.full_name(topic)
        ends = {tp: end for tp, end in situation.cluster.ends.items() if tp[0] == name}
        begins = situation.cluster.begins
        lag = sum(max(0, end - situation.cluster.committed.get(tp, begins.get(tp, 0))) for tp, end in ends.items())
        if lag:
            yield f"{name}: {counted(lag, 'record')} not yet processed."


def unheld_inputs(situation: Situation) -> Iterator[str]:
    """Yield inputs whose producers must be held while they grow, if the file does not say how to hold them.

    An application that writes to its own input is no such producer: it is stopped in any case.
    """
    growing = {each.declared for each in situation.plan.inputs if each.grows}
    for declared in situation.application.inputs:
        is_held = declared.producers is not None or declared.topic in situation.topology.outputs
        if declared.policy is InputPolicy.PAUSED and declared.topic in growing and not is_held:
            yield (
                f"{situation.full_name(declared.topic)}: `paused` without `producers:`, so that nothing stops its "
                "producers. Hold them yourself from the cutover on until the new generation runs; a record that "
                "comes meanwhile ends the cutover."
            )
