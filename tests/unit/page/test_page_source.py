"""However many people look while a broker hangs, only one thread of Airflow's server waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import Outage
from kafka_rescale.web import kafka_source
from kafka_rescale.web.kafka_source import KafkaSource
from kafka_rescale.web.kept import Kept

from tests.support.small_application import application

SOON = 10.0


@dataclass
class Broker:
    """Counts its reads, and hangs at the read that a test chooses."""

    hangs_at: int
    asked: Event = field(default_factory=Event)
    answers: Event = field(default_factory=Event)
    reads: int = 0

    def read(self) -> int:
        self.reads += 1
        if self.reads == self.hangs_at:
            self.asked.set()
            assert self.answers.wait(SOON)
        return self.reads


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def test_while_somebody_reads_the_others_get_what_was_read_last(pool: ThreadPoolExecutor) -> None:
    broker, now = Broker(hangs_at=2), [0.0]
    kept = Kept(broker.read, 2.0, clock=lambda: now[0])
    assert (kept.get(), kept.get()) == (1, 1)
    now[0] = 3.0
    first = pool.submit(kept.get)
    assert broker.asked.wait(SOON)
    assert pool.submit(kept.get).result(SOON) == 1
    broker.answers.set()
    assert first.result(SOON) == 2
    assert (kept.get(), broker.reads) == (2, 2)


def test_a_failed_look_lets_the_next_one_try() -> None:
    def fails() -> int:
        raise Outage("the brokers", found="no answer", expected="one", remedy="Wait.")

    kept = Kept(fails, 2.0)
    for _ in range(2):
        with pytest.raises(Outage):
            kept.get()


def test_at_the_very_first_look_the_others_are_told_that_it_is_being_read(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, broker = application("shop"), Broker(hangs_at=1)
    monkeypatch.setattr(kafka_source, "_files", lambda: {"shop": shop})

    def refused(_: Application) -> Any:
        broker.read()
        raise Outage("the brokers", found="no answer", expected="one", remedy="Wait.")

    monkeypatch.setattr(kafka_source, "topology_of", refused)
    source = KafkaSource(lambda _: pytest.fail("nothing is connected to"))
    first = pool.submit(source.page, "shop")
    assert broker.asked.wait(SOON)
    assert "being read" in pool.submit(source.summary, "shop").result(SOON).health.reason
    with pytest.raises(LookupError, match="being read"):
        pool.submit(source.page, "shop").result(SOON)
    broker.answers.set()
    with pytest.raises(LookupError, match="the brokers"):
        first.result(SOON)


def test_one_application_whose_brokers_hang_does_not_keep_the_list_of_the_others(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: application(name) for name in ("first", "second", "third")}
    monkeypatch.setattr(kafka_source, "_files", lambda: files)
    monkeypatch.setattr(kafka_source, "LIST_SECONDS", 0.5)
    broker = Broker(hangs_at=1)

    def refused(found: Application) -> Any:
        if found.application_id == "first":
            broker.read()
        raise Outage(found.application_id, found="no answer", expected="one", remedy="Wait.")

    monkeypatch.setattr(kafka_source, "topology_of", refused)
    source = KafkaSource(lambda _: pytest.fail("nothing is connected to"))
    try:
        lines = pool.submit(source.summaries, list(files)).result(SOON)
        assert [line.application for line in lines] == list(files)
        assert [line.health.reason.split()[0] for line in lines] == ["This", "second:", "third:"]
    finally:
        broker.answers.set()


def test_who_was_read_longest_ago_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, if the beginning of a long list hangs, its end would never be read."""
    files = {name: application(name) for name in ("first", "second")}
    monkeypatch.setattr(kafka_source, "_files", lambda: files)
    monkeypatch.setattr(kafka_source, "READERS", 1)
    monkeypatch.setattr(kafka_source, "FRESH_SECONDS", 0.0)
    read: list[str] = []

    def refused(found: Application) -> Any:
        read.append(found.application_id)
        raise Outage("the brokers", found="no answer", expected="one", remedy="Wait.")

    monkeypatch.setattr(kafka_source, "topology_of", refused)
    source = KafkaSource(lambda _: pytest.fail("nothing is connected to"))
    source.summary("first")
    source.summaries(list(files))
    assert read == ["first", "second", "first"]


def test_an_error_that_nobody_has_foreseen_leaves_the_others_alone_and_its_text_to_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files: dict[str, Any] = {"shop": application("shop"), "lost": "no such file"}
    monkeypatch.setattr(kafka_source, "_files", lambda: files)

    def fails(_: str) -> Any:
        raise RuntimeError("the backend of secrets says: hunter2")

    source = KafkaSource(fails)
    shop, lost = source.summaries(source.applications())
    assert ("RuntimeError" in shop.health.reason, "hunter2" in shop.health.reason) == (True, False)
    assert lost.health.reason == "no such file"
    with pytest.raises(LookupError, match="API server's log"):
        source.page("shop")


def test_a_directory_that_is_not_there_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", "/no/such/directory")
    source = KafkaSource(lambda _: pytest.fail("nothing is connected to"))
    with pytest.raises(LookupError, match="can't be found: see the API server's log"):
        source.applications()
