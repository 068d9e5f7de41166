"""When green does its first work and writes its first output, for the downtime report."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion.rescale import Rescale

log = logging.getLogger(__name__)

WATCH_SECONDS = 120.0
_POLL_SECONDS = 0.1


def outputs_now(rescale: Rescale) -> PartitionOffsets:
    """Return the ends of the output topics, as a ``read_committed`` consumer sees them."""
    return rescale.admin.end_offsets([o.topic for o in rescale.application.outputs], if_present=True)


def all_outputs_now(rescale: Rescale) -> PartitionOffsets:
    """Return the ends of all topics that green writes to besides its own: also of those that are not declared.

    Empty if they are not known. Only a later look for aborted records needs them, so no pause waits for them.
    """
    topics = {o.topic for o in rescale.application.outputs} | set(topology_of(rescale.application).outputs)
    try:
        return rescale.admin.end_offsets(topics, if_present=True)
    except RescaleError as error:
        log.warning("the ends of the outputs are not known, so nothing will be looked for in them: %s", error)
        return {}


def watch_first_output(
    rescale: Rescale, journal: Journal, outputs_before: PartitionOffsets, revive: Callable[[], object]
) -> dict[str, float]:
    """Watch green until it writes output, or until it is ready and there is nothing to process.

    :param outputs_before: ends of the output topics before green was started.
    :param revive: called again and again until green has joined its group.
    :returns: seconds by part. ``joined`` lasts until green's group has a member. ``restore`` lasts from there to
        green's first write to an internal topic, or to a stable group if there is no input. ``first_output`` lasts
        from there to the first output record. If no output came in time, ``watched_in_vain`` is how long this
        has waited for it; that does not count as downtime.
    """
    internal = [m.target for m in journal.plan.moves]
    began = time.monotonic()
    parts: dict[str, float] = {}
    while (elapsed := time.monotonic() - began) < WATCH_SECONDS:
        if "joined" not in parts:
            # Output alone is no sign of green. Others may write to the same topics. And a transaction that a
            # killed blue has left open may be aborted only now.
            if not rescale.admin.describe_group(journal.plan.green).is_live:
                revive()
                time.sleep(_POLL_SECONDS)
                continue
            parts["joined"] = round(elapsed, 3)
        wrote = _has_grown(outputs_before, outputs_now(rescale))
        worked = wrote or rescale.admin.end_offsets(internal, read_committed=False) != journal.green_ends
        idle = not worked and _is_idle(rescale, journal)
        if "restore" not in parts and (worked or idle):
            parts["restore"] = round(elapsed - parts["joined"], 3)
        if idle:
            return parts
        if "restore" in parts and (wrote or not outputs_before):
            parts["first_output"] = round(elapsed - sum(parts.values()), 3)
            return parts
        time.sleep(_POLL_SECONDS)
    parts["watched_in_vain"] = round(time.monotonic() - began - sum(parts.values()), 3)
    return parts


def _has_grown(before: PartitionOffsets, now: PartitionOffsets) -> bool:
    """Whether there is more in a topic. A broker that has just started may have left out a topic."""
    return any(now[topic] != before[topic] for topic in before.keys() & now.keys())


def _is_idle(rescale: Rescale, journal: Journal) -> bool:
    """Whether green is ready, but neither its topics nor a bridge have a record for it to work on."""
    sources = [i.green_topic for i in journal.plan.inputs]
    sources += [m.target for m in journal.plan.repartitions]
    expected = {t: journal.green_start[t] for t in sources}
    if journal.captured is not None:
        expected |= {m.source: journal.captured.committed[m.source] for m in journal.plan.bridges}
    return rescale.admin.end_offsets(expected) == expected and (
        rescale.admin.describe_group(journal.plan.green).state == "Stable"
    )
