"""Keys that a task gives up after processors were added. The new changelogs have them by now (KIP-287)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.state_copies import owners
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.spark.processing.logged_store import LoggedStore
from kafka_rescale.spark.processing.state_store import TaskStore
from kafka_rescale.spark.processing.task_work import TaskWork

Rows = list[dict[str, Any]]
"""``key`` and ``timestamp`` of entries."""


def has_to_let_go(work: TaskWork, mark: TaskMark) -> bool:
    """Return whether processors have been added since a task last committed."""
    return (mark.processors or work.initial) < work.processors


def moved_keys(
    work: TaskWork, subtopology: SubTopology, stores: Mapping[str, LoggedStore]
) -> Iterator[tuple[TaskStore, Rows]]:
    """Yield the keys that new processors have taken over, store by store, in batches that fit into a transaction.

    :param stores: the restored stores, by name.
    """
    for definition in subtopology.stores:
        if not definition.is_logged:
            continue
        store, size = stores[definition.name].store, work.limits.records
        rows: Rows = store.all_rows().select(["key", "timestamp"]).to_pylist()
        owner = owners(definition, [row["key"] for row in rows], work.placement, work.processors)
        moved = [row for row, its in zip(rows, owner, strict=True) if its != work.task.partition]
        yield from ((store, moved[at : at + size]) for at in range(0, len(moved), size))
