"""KIP-878: adding partitions may succeed for some topics and fail for others. Only the rest is requested again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.kafka.admin import growing_topics
from kafka_rescale.kafka.admin.growing_topics import GrowingTopics
from kafka_rescale.kafka.client.connection import KafkaConnection

QUOTA, TIMED_OUT = KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError._TIMED_OUT
POLICY, ALREADY = KafkaError.POLICY_VIOLATION, KafkaError.INVALID_PARTITIONS


class Brokers(GrowingTopics):
    """Answers every request topic by topic, as the test says. A topic without an answer left grows."""

    def __init__(self, counts: Mapping[str, int], answers: Mapping[str, list[int]] | None = None) -> None:
        super().__init__(KafkaConnection({"bootstrap.servers": "nowhere:1"}))
        self.counts, self.answers = dict(counts), {k: list(v) for k, v in (answers or {}).items()}
        self.requests: list[dict[str, int]] = []

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        return {n: TopicDescription(n, self.counts[n], 1) for n in names if n in self.counts}

    def _ask(self, targets: Mapping[str, int], *, validate_only: bool = False) -> dict[str, Any]:
        self.requests.append(dict(targets))
        if validate_only:
            left = {name: codes.pop(0) for name, codes in self.answers.items() if codes}
            return {name: KafkaError(left[name]) if name in left else None for name in targets}
        return {name: self._answer(name, target) for name, target in targets.items()}

    def _answer(self, name: str, target: int) -> Any:
        if left := self.answers.get(name):
            code = left.pop(0)
            if code in {TIMED_OUT, ALREADY}:  # the change is carried out, but the answer says otherwise
                self.counts[name] = target
            return KafkaError(code)
        self.counts[name] = target
        return None


def test_the_brokers_are_asked_for_all_at_once_what_they_would_grow() -> None:
    brokers = Brokers({"a": 4, "b": 6, "c": 8})
    brokers.validate_growth({"a": 8, "b": 8, "c": 8})
    assert brokers.requests == [{"a": 8, "b": 8}]
    assert brokers.counts == {"a": 4, "b": 6, "c": 8}
    brokers.validate_growth({"c": 8})
    assert len(brokers.requests) == 1


def test_what_they_would_not_grow_is_named_and_a_throttled_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers({"a": 4, "b": 4}, {"a": [QUOTA, TIMED_OUT], "b": [POLICY, POLICY, POLICY]})
    with pytest.raises(UnsafeState, match="growth of topic 'b' to 8 partitions: found POLICY_VIOLATION"):
        brokers.validate_growth({"a": 8, "b": 8})
    assert brokers.requests == [{"a": 8, "b": 8}] * 3
    monkeypatch.setattr(growing_topics, "CHANGE_SECONDS", 0.1)
    with pytest.raises(Outage, match="growth of topic 'a' to 8 partitions: found THROTTLING_QUOTA_EXCEEDED"):
        Brokers({"a": 4, "b": 4}, {"a": [QUOTA] * 1000}).validate_growth({"a": 8, "b": 8})


def test_several_topics_are_grown_by_one_request() -> None:
    brokers = Brokers({"a": 4, "b": 6, "c": 8})
    assert brokers.grow_topics({"a": 8, "b": 8, "c": 8}) == {"a": 4, "b": 6}
    assert brokers.requests == [{"a": 8, "b": 8}]


def test_only_the_rest_is_asked_for_again() -> None:
    brokers = Brokers({"a": 4, "b": 4, "c": 4}, {"b": [QUOTA, QUOTA]})
    assert brokers.grow_topics({"a": 8, "b": 8, "c": 8}) == {"a": 4, "b": 4, "c": 4}
    assert brokers.requests == [{"a": 8, "b": 8, "c": 8}, {"b": 8}, {"b": 8}]


@pytest.mark.parametrize("code", [TIMED_OUT, ALREADY])
def test_the_cluster_is_looked_at_before_anything_is_asked_for_again(code: int) -> None:
    brokers = Brokers({"a": 4, "b": 4}, {"b": [code]})
    assert brokers.grow_topics({"a": 8, "b": 8}) == {"a": 4, "b": 4}
    assert len(brokers.requests) == 1


def test_what_does_not_grow_in_time_is_named_and_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_topics, "CHANGE_SECONDS", 0.1)
    brokers = Brokers({"a": 4, "b": 4}, {"b": [QUOTA] * 1000})
    with pytest.raises(Outage, match=r"found b not grown \(THROTTLING_QUOTA_EXCEEDED\); a grown"):
        brokers.grow_topics({"a": 8, "b": 8})
    brokers.answers.clear()
    assert brokers.grow_topics({"a": 8, "b": 8}) == {"b": 4}
    assert brokers.requests[-1] == {"b": 8}


def test_a_topic_that_the_brokers_refuse_does_not_keep_the_others_from_growing() -> None:
    brokers = Brokers({"a": 4, "b": 4, "c": 4}, {"a": [POLICY], "b": [QUOTA]})
    with pytest.raises(UnsafeState, match=r"topic 'a': found POLICY_VIOLATION.*; b, c grown"):
        brokers.grow_topics({"a": 8, "b": 8, "c": 8})
    assert brokers.counts == {"a": 4, "b": 8, "c": 8}
    assert brokers.requests[1:] == [{"b": 8}]


@pytest.mark.parametrize(
    ("targets", "kind", "message"),
    [
        ({"a": 8, "b": 3}, UnsafeState, "topic 'b': found 4 partitions; expected at most 3"),
        ({"a": 8, "absent": 8}, InvalidInput, "topic 'absent': found no such topic"),
    ],
)
def test_nothing_is_asked_for_if_one_of_them_can_not_grow(
    targets: dict[str, int], kind: type[RescaleError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_topics, "SETTLE_SECONDS", 0.1)
    brokers = Brokers({"a": 4, "b": 4})
    with pytest.raises(kind, match=message):
        brokers.grow_topics(targets)
    assert brokers.requests == []


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_grown() -> None:
    class JustStarted(Brokers):
        """Each broker that is asked has just started, and knows the topic when it is asked again."""

        looks = 0

        def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
            self.looks += 1
            return {} if self.looks % 2 else super().describe_topics(names)

    brokers = JustStarted({"a": 4})
    assert brokers.grow_topics({"a": 8}) == {"a": 4}
    assert brokers.counts == {"a": 8}


def test_nothing_is_asked_for_if_nothing_is_left_to_do() -> None:
    brokers = Brokers({"a": 8})
    assert brokers.grow_topics({"a": 8}) == brokers.grow_topics({}) == {}
    assert not brokers.grow_topic("a", 8)
    assert brokers.requests == []
