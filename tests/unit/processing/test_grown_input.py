"""Reading a topic that has grown: which ends are asked for first, and which partitions wait for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from confluent_kafka import Consumer
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.processing.grown_ends import captured_ends
from kafka_rescale.kafka.processing.task_input import TaskInput

GROWN = {"in": GrownTopic("in", initial=1, partitions=4, processors=1)}


class Admin:
    """Brokers with a producer that writes between any two questions: to an old partition, then to a new one.

    :param hidden: for so many questions, the last record of partition 0 is within an open transaction.
    """

    def __init__(self, hidden: int = 0) -> None:
        self.ends, self.hidden = dict.fromkeys(range(4), 0), hidden

    def end_offsets(self, topics: Any, read_committed: bool = True) -> dict[str, dict[int, int]]:
        found = dict(self.ends)
        for partition in self.ends:
            self.ends[partition] += 1
        if read_committed and self.hidden:
            self.hidden -= 1
            found[0] -= 1
        return {topic: dict(found) for topic in topics}


def ends_of(admin: Admin, grown: Mapping[str, GrownTopic]) -> list[int]:
    ends = captured_ends(cast(ClusterAdmin, admin), {"in"}, grown)["in"]
    return [ends[partition] for partition in range(4)]


def test_the_end_of_a_new_partition_is_asked_for_before_that_of_the_one_it_was_split_from() -> None:
    zero, one, two, three = ends_of(Admin(), GROWN)
    assert zero > one > three, "3 was split from 1, and 1 from 0"
    assert zero > two


def test_asked_all_at_once_a_record_could_be_read_before_the_one_that_its_producer_wrote_first() -> None:
    assert len(set(ends_of(Admin(), {}))) == 1


def test_the_end_of_an_old_partition_is_not_in_front_of_an_open_transaction() -> None:
    zero, *_, three = ends_of(Admin(hidden=5), GROWN)
    assert zero > three


class Message:
    """A record as the client returns it."""

    def __init__(self, partition: int, offset: int, timestamp: int) -> None:
        self._at, self._timestamp = (partition, offset), timestamp

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return self._at[0]

    def offset(self) -> int:
        return self._at[1]

    def timestamp(self) -> tuple[int, int]:
        return 0, self._timestamp

    def error(self) -> None:
        return None


class Log:
    """A consumer that gets everything at once."""

    def __init__(self, times: Mapping[int, list[int]]) -> None:
        self._messages = [Message(p, o, at) for p, its in times.items() for o, at in enumerate(its)]

    def assign(self, partitions: Any) -> None: ...

    def consume(self, count: int, timeout: float) -> list[Message]:
        taken, self._messages = self._messages, []
        return taken


TIMES = {0: [50, 70, 90], 1: [10, 60], 2: [20, 80]}


def read(holds: Mapping[int, Mapping[int, int]]) -> list[tuple[int, int]]:
    """The partition and offset of all records, in the order of reading."""
    ends = {("in", p): len(its) for p, its in TIMES.items()}
    waiting = {("in", p): {("in", q): fence for q, fence in its.items()} for p, its in holds.items()}
    source = TaskInput(cast(Consumer, Log(TIMES)), dict.fromkeys(ends, 0), ends, waiting)
    found = [(m.partition() or 0, m.offset() or 0) for m in source.records()]
    assert source.positions() == ends
    return found


def test_without_fences_the_lowest_timestamp_comes_next() -> None:
    assert read({}) == [(1, 0), (2, 0), (0, 0), (1, 1), (0, 1), (2, 1), (0, 2)]


def test_a_partition_waits_for_its_fence_and_no_longer() -> None:
    assert read({1: {0: 2}}) == [(2, 0), (0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (0, 2)]


def test_what_waits_for_one_that_waits_comes_last() -> None:
    assert read({1: {0: 3}, 2: {0: 3, 1: 1}}) == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (1, 1), (2, 1)]


def test_a_fence_that_was_deleted_with_its_partition_holds_nobody_up() -> None:
    assert read({1: {0: 7}})[-2:] == [(1, 0), (1, 1)]
