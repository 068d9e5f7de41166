"""The commit waits for a coordinator that does not know a growth yet, as no generation runs.

A refusal fails at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import (
    CoordinatorLoadInProgressError,
    InvalidCommitOffsetSizeError,
    KafkaTimeoutError,
    NoError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.kafka.admin import group_members
from kafka_rescale.kafka.admin.calls import ATTEMPTS, SETTLE_SECONDS
from kafka_rescale.kafka.admin.offsets import OffsetAdmin
from kafka_rescale.kafka.client import waiting
from kafka_rescale.kafka.client.connection import KafkaConnection

WANTED: PartitionOffsets = {"orders": {0: 5, 4: 0, 5: 0}}
TEXTS = {"orders": {4: "text"}}
NOWHERE = KafkaConnection({"bootstrap.servers": "127.0.0.1:1"})

Codes = Mapping[int, type[Exception]]
"""The coordinator's error for a partition. All other partitions have been committed."""


class Coordinator(OffsetAdmin):
    """Gives one answer after the other to requests. The last answer is repeated.

    :param answers: an answer that is an error alone is for the whole request.
    """

    def __init__(self, *answers: Codes | Exception) -> None:
        super().__init__(NOWHERE)
        self.answers, self.asked, self.new_clients = list(answers), 0, 0
        self.has: PartitionOffsets = {}
        self.texts: dict[int, str] = {}
        self.keeps = True

    @contextmanager
    def kept_client(self, *_: Any) -> Iterator[Any]:
        yield SimpleNamespace(alter_group_offsets=self.alter)

    def admin_client(self, *_: Any) -> Any:
        self.new_clients += 1
        return self.kept_client()

    def alter(self, group: str, wanted: Mapping[Any, Any]) -> dict[Any, Any]:
        assert group == "g"
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        for at, offset in wanted.items():
            if self.keeps and at.partition not in answer:
                self.has.setdefault(at.topic, {})[at.partition] = offset.offset
                self.texts[at.partition] = offset.metadata
        return {at: answer.get(at.partition, NoError) for at in wanted}

    def committed(self, group: str, counts: Mapping[str, int] | None = None) -> PartitionOffsets:
        assert group == "g"
        return self.has


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses. None of them takes any time."""
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(waiting, "time", clock)
    return pauses


@pytest.fixture
def commit(monkeypatch: pytest.MonkeyPatch) -> Any:
    def commit(coordinator: Coordinator) -> Coordinator:
        for name in ("kept_client", "admin_client"):
            monkeypatch.setattr(group_members, name, getattr(coordinator, name))
        coordinator.commit("g", WANTED, TEXTS)
        return coordinator

    return commit


def test_where_every_partition_is_known_nothing_is_waited_for(commit: Any, slept: list[float]) -> None:
    coordinator = commit(Coordinator({}))
    assert (coordinator.has, coordinator.asked, slept) == (WANTED, 1, [])


def test_metadata_is_committed_beside_the_offsets_that_have_some(commit: Any) -> None:
    assert commit(Coordinator({})).texts == {0: "", 4: "text", 5: ""}


def test_a_coordinator_that_hears_late_of_a_growth_is_asked_again(commit: Any, slept: list[float]) -> None:
    absent = UnknownTopicOrPartitionError
    coordinator = commit(Coordinator({4: absent, 5: absent}, {5: absent}, {}))
    assert (coordinator.has, coordinator.asked, len(slept)) == (WANTED, 3, 2)


def test_a_coordinator_that_has_moved_is_looked_for_by_a_new_client(commit: Any) -> None:
    # The client remembers the coordinators of groups.
    coordinator = commit(Coordinator(dict.fromkeys((0, 4, 5), NotCoordinatorError), {}))
    assert (coordinator.has, coordinator.new_clients) == (WANTED, 1)


def test_more_answers_than_attempts_are_waited_out(commit: Any) -> None:
    assert commit(Coordinator(*[{4: UnknownTopicOrPartitionError}] * (3 * ATTEMPTS), {})).has == WANTED


@pytest.mark.parametrize("error", [UnknownTopicOrPartitionError, CoordinatorLoadInProgressError])
def test_partitions_that_stay_unknown_are_an_outage_that_names_them(
    commit: Any, error: type[Exception], slept: list[float]
) -> None:
    with pytest.raises(Outage, match=r"offsets of group 'g' for orders-4, orders-5: found "):
        commit(Coordinator({4: error, 5: error}))
    assert SETTLE_SECONDS <= sum(slept) < SETTLE_SECONDS + 1


def test_a_coordinator_that_never_answers_is_an_outage(commit: Any) -> None:
    with pytest.raises(Outage, match="offsets of group 'g': found KafkaTimeoutError"):
        commit(Coordinator(KafkaTimeoutError()))


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (TopicAuthorizationFailedError, InvalidInput, "offsets of group 'g' for orders-5: found TOPIC_AUTH"),
        (UnknownMemberIdError, UnsafeState, "offsets of group 'g': found live members"),
        (InvalidCommitOffsetSizeError, UnsafeState, "for orders-5"),
    ],
)
def test_a_refusal_is_raised_at_once_also_beside_what_is_not_known_yet(
    commit: Any, error: type[Exception], kind: type[RescaleError], message: str, slept: list[float]
) -> None:
    coordinator = Coordinator({4: UnknownTopicOrPartitionError, 5: error})
    with pytest.raises(kind, match=message):
        commit(coordinator)
    assert (coordinator.asked, slept) == (1, [])


def test_who_is_overwritten_every_time_does_not_go_on_with_it(commit: Any) -> None:
    coordinator = Coordinator({4: UnknownTopicOrPartitionError}, {})
    coordinator.keeps = False
    with pytest.raises(UnsafeState, match="Another process commits to this group"):
        commit(coordinator)
    assert coordinator.asked == 1 + ATTEMPTS
