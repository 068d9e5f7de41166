"""When green does its first work and writes its first output, for the downtime report."""

from __future__ import annotations

import time

from kafka_rescale.core.journal import PartitionOffsets
from kafka_rescale.core.plan import Plan
from kafka_rescale.operations.rescale import Rescale

WATCH_SECONDS = 120.0
_POLL_SECONDS = 0.1


def outputs_now(rescale: Rescale) -> PartitionOffsets:
    """Return the ends of the output topics, as a ``read_committed`` consumer of them sees it."""
    return rescale.admin.end_offsets([o.topic for o in rescale.application.outputs])


def watch_first_output(
    rescale: Rescale, plan: Plan, green_ends: PartitionOffsets, outputs_before: PartitionOffsets
) -> dict[str, float]:
    """Watch green until it writes output.

    :param green_ends: ends of green's topics before it was started.
    :param outputs_before: ends of the output topics before it was started.
    :returns: seconds of ``restore`` (from the start command's return to green's first write to an internal topic)
        and ``first_output`` (from there to the first output record); without input there is neither, and the
        time spent in vain is returned as ``watched_in_vain`` so that it is not counted as downtime.
    """
    internal = [m.target for m in plan.moves]
    began = time.monotonic()
    parts: dict[str, float] = {}
    while time.monotonic() - began < WATCH_SECONDS:
        elapsed = time.monotonic() - began
        wrote = outputs_now(rescale) != outputs_before
        if "restore" not in parts and (
            wrote or rescale.admin.end_offsets(internal, read_committed=False) != green_ends
        ):
            parts["restore"] = round(elapsed, 3)
        if "restore" in parts and (wrote or not outputs_before):
            parts["first_output"] = round(elapsed - parts["restore"], 3)
            return parts
        time.sleep(_POLL_SECONDS)
    parts["watched_in_vain"] = round(time.monotonic() - began - sum(parts.values()), 3)
    return parts
