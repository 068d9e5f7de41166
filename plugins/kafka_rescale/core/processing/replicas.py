"""How many records the state that a client has saved of a task is behind, and whether a standby has work to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_rescale.core.assignment.lags import task_lag
from kafka_rescale.core.processing.task_state import MARKER, Changelog, SavedState, newest

StoreLogs = Mapping[str, Changelog]
"""The changelog partition of each logged store of a task, by the store's name."""


def saved_lag(saved: Mapping[str, Collection[SavedState]], logs: StoreLogs, now_ms: int) -> int | None:
    """Return how many records the saved state of a task is behind, over all its stores. None: no state is usable.

    :param saved: by store, the saved states of the store.
    """
    ends = positions = 0
    has_any = False
    for store, log in logs.items():
        ends += log.end
        usable = newest(saved.get(store, ()), log, now_ms)
        if usable:
            has_any = True
            positions += log.end if log.end - usable[0].position <= MARKER else usable[0].position
    return task_lag(positions, ends) if has_any else None


def is_due(saved: Collection[SavedState], log: Changelog, now_ms: int) -> bool:
    """Return whether a standby has something to do: read new records, or confirm that its state is current.

    If a state is older than ``delete.retention.ms``, it may lack deletions, and nothing shows this. Therefore a
    standby confirms its state within half of this time.

    A changelog that retention has emptied has nothing to read. But only a saved state says that the standby is at
    its end (``saved_lag``).
    """
    usable = newest(saved, log, now_ms)
    if not usable:
        return log.end > 0
    if log.end - usable[0].position > MARKER:
        return True
    return log.tombstone_ms is not None and now_ms - usable[0].as_of_ms >= log.tombstone_ms // 2
