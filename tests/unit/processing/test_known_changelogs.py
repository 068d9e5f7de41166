"""Where changelogs begin and end, for tasks that the topics may not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.kafka.processing.changelogs import known_state

from tests.support.words_pipeline import words

CHANGELOG = "words-counts-changelog"


class Admin:
    """A cluster with the changelog of the words."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        assert list(names) == [CHANGELOG]
        return {CHANGELOG: TopicDescription(CHANGELOG, self._partitions, 1, topic_id="id")}

    def begin_offsets(self, _: Iterable[str]) -> PartitionOffsets:
        return {CHANGELOG: dict.fromkeys(range(self._partitions), 0)}

    def end_offsets(self, _: Iterable[str]) -> PartitionOffsets:
        return {CHANGELOG: dict.fromkeys(range(self._partitions), 9)}


def test_partitions_that_a_changelog_lacks_are_left_out() -> None:
    """Until the next run, an edited program's stores are looked up for the tasks of the record of the last run."""
    admin: Any = Admin(2)
    known = known_state(admin, "words", words(), {0: 2, 1: 4})
    assert {task: set(stores) for task, stores in known.logs.items()} == {
        TaskId(1, 0): {"counts"},
        TaskId(1, 1): {"counts"},
        TaskId(1, 2): set(),
        TaskId(1, 3): set(),
    }
