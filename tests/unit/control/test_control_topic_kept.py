"""A control topic that exists is used as it is: nothing of it stops an application, now or later."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.kafka.admin.topics import TopicAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import control_topic
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic

IN_SYNC = "min.insync.replicas"


class Brokers(TopicAdmin):
    """Three brokers with one topic, and the configs that it was given."""

    def __init__(self, topic: TopicDescription) -> None:
        self.topic = topic
        self.changed: dict[str, str | None] = {}
        self.is_young = False

    def describe_topics(self, _: object) -> dict[str, TopicDescription]:
        found = {} if self.is_young else {TOPIC: self.topic}
        self.is_young = False
        return found

    def is_absent(self, name: str) -> bool:
        return name != TOPIC

    def broker_count(self) -> int:
        return 3

    def alter_configs(self, _: str, changes: Mapping[str, str | None]) -> None:
        self.changed.update(changes)


def ensured(
    monkeypatch: pytest.MonkeyPatch, partitions: int, replicas: int, *, young: bool = False, **overrides: str
) -> Mapping[str, str | None]:
    """Return the configs that change when the topic is ensured.

    :param young: whether the first broker that is asked has just started, and does not know the topic.
    """
    brokers = Brokers(
        TopicDescription(TOPIC, partitions, replicas, overrides={**control_topic._CONFIGS, **overrides})
    )
    brokers.is_young = young
    monkeypatch.setattr(control_topic, "ClusterAdmin", lambda _: brokers)
    ControlTopic(KafkaConnection({"bootstrap.servers": "h:9"}), "shop").ensure()
    return brokers.changed


@pytest.mark.parametrize(("replicas", "changed"), [(1, {}), (2, {}), (3, {IN_SYNC: "2"}), (4, {IN_SYNC: "2"})])
def test_two_replicas_in_sync_are_required_only_where_one_broker_may_be_away(
    replicas: int, changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two replicas, the restart of one broker would refuse every record of every application."""
    assert ensured(monkeypatch, 1, replicas) == changed


def test_a_topic_that_somebody_has_grown_is_used_and_its_configs_are_set(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It can't shrink. Were it refused, a run could not start again what another run has stopped."""
    caplog.set_level(logging.WARNING)
    changed = ensured(monkeypatch, 3, 3, **{"cleanup.policy": "delete"})
    assert changed == {"cleanup.policy": "compact", IN_SYNC: "2"}
    assert "3 partitions" in caplog.text
    assert "Don't delete it" in caplog.text


@pytest.mark.parametrize(("partitions", "replicas"), [(3, 3), (1, 2)])
def test_a_broker_that_has_just_started_is_asked_again(
    partitions: int, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {IN_SYNC: "2"} if replicas > 2 else {}
    assert ensured(monkeypatch, partitions, replicas, young=True) == expected
