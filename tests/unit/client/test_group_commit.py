"""The commit waits for a coordinator that does not know a growth yet, as no generation runs.

A refusal fails at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from kafka.errors import NoError, UnknownMemberIdError, UnknownTopicOrPartitionError
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.kafka.admin import group_members
from kafka_rescale.kafka.admin.calls import ATTEMPTS, SETTLE_SECONDS
from kafka_rescale.kafka.admin.group_metadata import commit_with_metadata
from kafka_rescale.kafka.admin.offsets import OffsetAdmin
from kafka_rescale.kafka.client import waiting
from kafka_rescale.kafka.client.connection import KafkaConnection

WANTED: PartitionOffsets = {"orders": {0: 5, 4: 0, 5: 0}}
NOWHERE = KafkaConnection({"bootstrap.servers": "127.0.0.1:1"})

ABSENT, FORBIDDEN = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED

Codes = Mapping[int, int]
"""The coordinator's error code for a partition. For all other partitions, it has committed."""


class Coordinator(OffsetAdmin):
    """Gives one answer after the other to requests. The last answer is repeated.

    :param answers: an answer that is a single code is for the whole request.
    """

    def __init__(self, *answers: Codes | int) -> None:
        super().__init__(NOWHERE)
        self.answers, self.asked = list(answers), 0
        self.has: PartitionOffsets = {}
        self.keeps = True

    @property
    def _client(self) -> Any:
        return SimpleNamespace(alter_consumer_group_offsets=lambda requests, **_: {"g": requests[0]})

    def _once(self, ask: Callable[[Any, float], Any], limit: float = SETTLE_SECONDS) -> dict[Any, Any]:
        self.asked += 1
        futures = ask(self._client, limit)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            return {"g": KafkaError(answer)}
        entries = futures["g"].topic_partitions
        taken = {t.partition: t.offset for t in entries if t.partition not in answer} if self.keeps else {}
        self.has = {"orders": {**self.has.get("orders", {}), **taken}}
        told = [_told(t, KafkaError(answer[t.partition]) if t.partition in answer else None) for t in entries]
        return {"g": SimpleNamespace(topic_partitions=told)}

    def committed(self, group: str, counts: Mapping[str, int] | None = None) -> PartitionOffsets:
        assert group == "g"
        return self.has


def _told(at: TopicPartition, error: KafkaError | None) -> SimpleNamespace:
    return SimpleNamespace(topic=at.topic, partition=at.partition, error=error)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses. None of them takes any time."""
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(waiting, "time", clock)
    return pauses


def test_where_every_partition_is_known_nothing_is_waited_for(slept: list[float]) -> None:
    coordinator = Coordinator({})
    coordinator.commit("g", WANTED)
    assert (coordinator.has, coordinator.asked, slept) == (WANTED, 1, [])


def test_a_coordinator_that_hears_late_of_a_growth_is_asked_again(slept: list[float]) -> None:
    coordinator = Coordinator({4: ABSENT, 5: ABSENT}, {5: ABSENT}, {})
    coordinator.commit("g", WANTED)
    assert (coordinator.has, coordinator.asked, len(slept)) == (WANTED, 3, 2)


def test_more_answers_than_attempts_are_waited_out() -> None:
    coordinator = Coordinator(*[{4: ABSENT}] * (3 * ATTEMPTS), {})
    coordinator.commit("g", WANTED)
    assert coordinator.has == WANTED


@pytest.mark.parametrize("code", [ABSENT, KafkaError._UNKNOWN_PARTITION, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_partitions_that_stay_unknown_are_an_outage_that_names_them(code: int, slept: list[float]) -> None:
    with pytest.raises(Outage, match=r"offsets of group 'g' for orders-4, orders-5: found "):
        Coordinator({4: code, 5: code}).commit("g", WANTED)
    assert SETTLE_SECONDS <= sum(slept) < SETTLE_SECONDS + 1


def test_a_coordinator_that_never_answers_is_an_outage() -> None:
    with pytest.raises(Outage, match="offsets of group 'g': found _TIMED_OUT"):
        Coordinator(KafkaError._TIMED_OUT).commit("g", WANTED)


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (FORBIDDEN, InvalidInput, "offsets of group 'g' for orders-5: found TOPIC_AUTH"),
        (KafkaError.UNKNOWN_MEMBER_ID, UnsafeState, "offsets of group 'g': found live members"),
        (KafkaError.INVALID_COMMIT_OFFSET_SIZE, UnsafeState, "for orders-5"),
    ],
)
def test_a_refusal_is_raised_at_once_also_beside_what_is_not_known_yet(
    code: int, kind: type[RescaleError], message: str, slept: list[float]
) -> None:
    coordinator = Coordinator({4: ABSENT, 5: code})
    with pytest.raises(kind, match=message):
        coordinator.commit("g", WANTED)
    assert (coordinator.asked, slept) == (1, [])


def test_a_refusal_of_the_whole_request_is_raised_at_once(slept: list[float]) -> None:
    with pytest.raises(UnsafeState, match="live members"):
        Coordinator(KafkaError.NON_EMPTY_GROUP).commit("g", WANTED)
    assert slept == []


def test_who_is_overwritten_every_time_does_not_go_on_with_it() -> None:
    coordinator = Coordinator({4: ABSENT}, {})
    coordinator.keeps = False
    with pytest.raises(UnsafeState, match="Another process commits to this group"):
        coordinator.commit("g", WANTED)
    assert coordinator.asked == 1 + ATTEMPTS


class TestWithMetadata:
    """The same with the other client, which commits offsets together with metadata."""

    @pytest.fixture
    def write(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PartitionOffsets]:
        def write(*answers: Mapping[int, Any]) -> PartitionOffsets:
            left = list(answers)

            def alter(_: str, wanted: Any) -> dict[Any, Any]:
                codes = left.pop(0) if len(left) > 1 else left[0]
                return {at: codes.get(at.partition, NoError) for at in wanted}

            client = nullcontext(SimpleNamespace(alter_group_offsets=alter))
            monkeypatch.setattr(group_members, "admin_client", lambda *_: client)
            return commit_with_metadata(NOWHERE, "g", WANTED, {"orders": {4: "text", 5: "text"}})

        return write

    def test_it_is_asked_again(self, write: Callable[..., PartitionOffsets], slept: list[float]) -> None:
        absent = {5: UnknownTopicOrPartitionError}
        assert write(absent, absent, {}) == {"orders": {0: 5}}
        assert len(slept) == 2

    def test_what_stays_unknown_is_named(self, write: Callable[..., PartitionOffsets]) -> None:
        with pytest.raises(Outage, match="offsets of group 'g' for orders-5: found UnknownTopicOrPartitionError"):
            write({5: UnknownTopicOrPartitionError})

    def test_a_refusal_is_raised_at_once(self, write: Callable[..., PartitionOffsets], slept: list[float]) -> None:
        with pytest.raises(UnsafeState, match="orders-5: found UnknownMemberIdError"):
            write({4: UnknownTopicOrPartitionError, 5: UnknownMemberIdError})
        assert slept == []
