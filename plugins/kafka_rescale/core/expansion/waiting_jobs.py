"""Jobs at work whose Spark has no executor: they report as if they went on, and wait for a person perhaps."""

from __future__ import annotations

from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import AT_WORK, JOB


def told_waiting(control: ControlState) -> list[str]:
    """Return a sentence for each job at work of the run in progress, and for the bridge, that has no executor.

    :param control: the control state, ``with_silent_jobs``.
    """
    journal = control.journal
    owner = journal.owner if journal is not None and journal.in_progress else None
    return [
        f"{r.job} waits: {r.waits}"
        for r in control.results.values()
        if r.waits and r.state in AT_WORK and (r.run == owner or r.job == JOB)
    ]
