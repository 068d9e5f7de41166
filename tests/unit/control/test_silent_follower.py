"""A client that stands still is replaced: a task must hear that blue is stopped."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_follower
from kafka_rescale.kafka.control.journal_follower import LONGEST_SILENCE_SECONDS, SILENT_SECONDS, JournalFollower

from tests.support.plans import plan_for

CONNECTION = KafkaConnection({"bootstrap.servers": "127.0.0.1:9"})


def message(offset: int, value: bytes | None) -> Any:
    """A record, or the end of the topic."""
    error = KafkaError(KafkaError._PARTITION_EOF) if value is None else None
    told = {"error": error, "offset": offset, "key": b"shop/journal", "value": value}
    return SimpleNamespace(**{name: lambda found=found: found for name, found in told.items()})


def journal(phase: Phase) -> bytes:
    return Journal(plan=plan_for("shop"), phase=phase, owner="run").model_dump_json().encode()


class Topic:
    """The control topic, and the clients that read it.

    :param stands_still: how many of the clients stop reading after their first poll.
    """

    def __init__(self, stands_still: int) -> None:
        self.records = [journal(Phase.WARMING)]
        self.stands_still, self.clients = stands_still, list[Any]()
        self.seconds = 0.0
        self.closed: list[threading.Thread] = []

    def client(self, _: object) -> Any:
        """Return a new client."""
        made = SimpleNamespace(position=0, told_end=False, still=len(self.clients) < self.stands_still)
        self.clients.append(made)

        def assign(partitions: Any) -> None:
            made.position = made.began = partitions[0].offset

        def poll(_: float) -> Any:
            if made.position < len(self.records) and not (made.still and made.told_end):
                made.position += 1
                return message(made.position - 1, self.records[made.position - 1])
            if made.told_end:
                return None
            made.told_end = True
            return message(made.position, None)

        close = self.closed.append
        return SimpleNamespace(assign=assign, poll=poll, close=lambda: close(threading.current_thread()))


def following(monkeypatch: pytest.MonkeyPatch, topic: Topic) -> JournalFollower:
    monkeypatch.setattr(journal_follower, "Consumer", topic.client)
    monkeypatch.setattr(journal_follower, "time", SimpleNamespace(monotonic=lambda: topic.seconds))
    follower = JournalFollower(CONNECTION, "shop")
    follower.first()
    return follower


def phase(follower: JournalFollower) -> Phase | None:
    found = follower.latest()
    return found.phase if found else None


def test_what_a_client_does_not_read_a_new_one_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(stands_still=1)
    follower = following(monkeypatch, topic)
    topic.records.append(journal(Phase.QUIESCED))
    topic.seconds = SILENT_SECONDS
    assert phase(follower) is Phase.WARMING
    topic.seconds += 0.1
    follower.follow()
    assert phase(follower) is Phase.QUIESCED
    assert [client.began for client in topic.clients] == [0, 1], "it reads on, and counts no sign twice"
    assert follower.received == 2


def test_the_silent_client_is_closed_elsewhere_because_it_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(stands_still=1)
    follower = following(monkeypatch, topic)
    topic.seconds = SILENT_SECONDS + 0.1
    follower.follow()
    for thread in [t for t in threading.enumerate() if t.name == "kafka-rescale-close"]:
        thread.join()
    assert [thread is threading.main_thread() for thread in topic.closed] == [False]


def test_a_topic_without_news_is_asked_more_and_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(stands_still=0)
    follower = following(monkeypatch, topic)
    for _ in range(3600):
        topic.seconds += 1.0
        follower.follow()
    assert len(topic.clients) < 3600 / LONGEST_SILENCE_SECONDS + 10
    topic.records.append(journal(Phase.QUIESCED))
    assert phase(follower) is Phase.QUIESCED


def test_where_no_new_client_can_be_made_the_present_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(stands_still=0)
    follower = following(monkeypatch, topic)

    def fails(_: object) -> Any:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "ssl.ca.location failed"))

    monkeypatch.setattr(journal_follower, "Consumer", fails)
    topic.seconds = SILENT_SECONDS + 0.1
    follower.follow()
    topic.records.append(journal(Phase.QUIESCED))
    assert phase(follower) is Phase.QUIESCED


def test_a_record_of_a_newer_version_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(stands_still=0)
    follower = following(monkeypatch, topic)
    newer = {**json.loads(journal(Phase.QUIESCED)), "field_of_tomorrow": 1}
    topic.records.append(json.dumps(newer).encode())
    with pytest.raises(UnsafeState, match="A newer version has written it"):
        follower.follow()
