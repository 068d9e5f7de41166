"""A broker that has just started may not know a topic. That ends neither a reading nor a copy nor a promotion."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.kafka.admin import topic_reader, topics
from kafka_rescale.kafka.admin.topic_reader import TopicReader
from kafka_rescale.kafka.admin.topics import TopicAdmin
from kafka_rescale.kafka.client import waiting
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_follower
from kafka_rescale.kafka.copy.fences import topic_ids
from kafka_rescale.kafka.copy.settings import rules_of
from kafka_rescale.kafka.reading import log_reader, range_reader, remaining

from tests.support.plans import in_place_plan

CONNECTION = KafkaConnection({"bootstrap.servers": "127.0.0.1:9"})
UNKNOWN, FORBIDDEN = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED
PLAN = in_place_plan()


def message(offset: int, code: int | None = None) -> Any:
    """A record of partition 0, or an error."""
    told = {
        "error": None if code is None else KafkaError(code),
        "topic": "log",
        "partition": 0,
        "offset": offset,
        "timestamp": (1, 1_000),
        "key": b"shop/a",
        "value": b"there",
    }
    return SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})


class Consumer:
    """Tells of an error, and then goes on to the end."""

    error = UNKNOWN

    def __init__(self, _: object) -> None:
        self._left = [message(0, self.error), message(0), message(1, KafkaError._PARTITION_EOF)]

    def poll(self, _: float) -> Any:
        return self._left.pop(0) if self._left else None

    def consume(self, *_: object) -> list[Any]:
        return [self._left.pop(0)] if self._left else []

    assign = unassign = pause = close = lambda *_: None


def latest_values() -> None:
    assert log_reader.LatestValues(CONNECTION, "log", "shop/").up_to(1, seconds=30) == {"shop/a": b"there"}


def journal() -> None:
    follower = journal_follower.JournalFollower(CONNECTION, "shop")
    follower.to_end()
    assert follower.received == 1


def ranges() -> None:
    assert len(list(range_reader.read_ranges(CONNECTION, "log", {0: (0, 1)}))) == 1


def rest() -> None:
    assert list(remaining.with_records(CONNECTION, {("log", 0): (0, 1)})) == [("log", 0)]


READERS = {log_reader: latest_values, journal_follower: journal, range_reader: ranges, remaining: rest}


@pytest.mark.parametrize("module", READERS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_reading_goes_on(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setattr(module, "Consumer", Consumer)
    READERS[module]()


@pytest.mark.parametrize("module", READERS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_reading_that_is_forbidden_ends(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setattr(Consumer, "error", FORBIDDEN)
    monkeypatch.setattr(module, "Consumer", Consumer)
    with pytest.raises(InvalidInput):
        READERS[module]()


class Admin(TopicReader):
    """An admin client. Some of the topics are absent. The first broker has just started and knows none of them."""

    def __init__(self, *absent: str) -> None:
        super().__init__(CONNECTION)
        self._absent, self._is_young = absent, True

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        known = [name for name in names if name not in self._absent and not self._is_young]
        return {name: TopicDescription(name, 8, 1, topic_id=f"id of {name}") for name in known}

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        return {name: of.topic_id for name, of in self.describe_topics(names).items()}

    def is_absent(self, name: str) -> bool:
        return name in self._absent

    def _ask_another(self) -> None:
        self._is_young = False


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_PAUSE", 0.0)


@pytest.mark.usefixtures("_at_once")
class TestTopicsOfACopy:
    def test_their_rules_are_asked_for_again(self) -> None:
        rules: Any = rules_of(Admin(), PLAN.moves)  # type: ignore[arg-type]
        assert rules.sources.keys() == {move.source for move in PLAN.moves}

    def test_a_topic_that_stays_unknown_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gone, found = PLAN.moves[0].source, topic_reader.poll_until
        monkeypatch.setattr(
            topic_reader, "poll_until", lambda probe, **told: found(probe, **{**told, "seconds": 0.1})
        )
        with pytest.raises(UnsafeState, match=f"topics {gone}: found nothing"):
            rules_of(Admin(gone), PLAN.moves)  # type: ignore[arg-type]

    def test_their_ids_are_asked_for_again(self) -> None:
        assert topic_ids(Admin(), ["a", "b"]) == {"a": "id of a", "b": "id of b"}  # type: ignore[arg-type]

    def test_of_an_absent_topic_the_controller_is_believed_at_once(self) -> None:
        assert topic_ids(Admin("a"), ["a", "b"]) == {"b": "id of b"}  # type: ignore[arg-type]


class Forbidden(TopicAdmin):
    """The admin client of a user who may not create topics.

    :param shows_at: the number of the request at which a broker knows the topic; 0 is never.
    """

    def __init__(self, shows_at: int) -> None:
        super().__init__(CONNECTION)
        self._shows_at, self.asked = shows_at, 0

    def _settled(self, *_: object, **__: object) -> Any:
        return {"log": KafkaError(FORBIDDEN)}

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        self.asked += 1
        return dict.fromkeys(names, 1) if 0 < self._shows_at <= self.asked else {}


@pytest.mark.parametrize(("shows_at", "is_absent"), [(0, True), (1, False), (3, False)])
def test_a_user_who_may_not_create_a_topic_asks_brokers_for_a_while(
    monkeypatch: pytest.MonkeyPatch, shows_at: int, is_absent: bool
) -> None:
    monkeypatch.setattr(topics, "UNKNOWN_SECONDS", 0.1)
    monkeypatch.setattr(topics, "UNKNOWN_PAUSE_SECONDS", 0.0)
    admin = Forbidden(shows_at)
    assert admin.is_absent("log") is is_absent
    assert admin.asked > 2 or admin.asked == shows_at
