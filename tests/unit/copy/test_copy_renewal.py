"""If a worker's commit does not return, it says so and gets new clients.

If this repeats without progress, it fails.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.copy import loop as copy_loop
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.kafka.copy.settings import LIVE, Rules
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.source_rules import SourceRules

MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="blue",
    target="green",
    store="s",
    source_partitions=1,
    target_partitions=2,
)
SOURCE = ("blue", 0)


class World:
    """What the clients of a worker find. Each commit takes the next of the outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[int | Exception] = []
        self.opened: list[Clients] = []
        self.newer: Exception | None = None


class Clients:
    """The clients of one worker. Their world decides the outcome of a commit."""

    def __init__(self, world: World) -> None:
        self.world, self.is_abandoned = world, False
        world.opened.append(self)
        self.writer = SimpleNamespace(
            unit=units_of([MOVE])[0],
            position=0,
            restart=Position(0, Mark()),
            mark=Mark(),
            has_begun=True,
            unrecorded_ms=0,
            pending_bytes=0,
        )
        self.writers: dict[Any, Any] = {SOURCE: self.writer}
        self.consumer = SimpleNamespace(consume=lambda *_: [], assign=lambda _: None)
        self.buckets: list[Any] = []
        self.commits = SimpleNamespace(due=list, commit=self.commit, write=lambda _: set(), has_rewound=False)

    def committed(self) -> dict[Any, int]:
        return {SOURCE: self.writer.restart.offset}

    def commit(self, _: object) -> bool:
        outcome = self.world.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        self.writer.restart = Position(outcome, Mark())
        return True

    def await_answer(self, _: object) -> None: ...

    def assert_newest(self, _: str) -> None:
        if self.world.newer is not None:
            raise self.world.newer

    def abandon(self) -> None:
        self.is_abandoned = True

    def go_on_from(self, before: Clients) -> None:
        self.writer.restart = before.writer.restart


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, world: World) -> CopyWorker:
    rules = Rules({"blue": SourceRules(tombstone_ms=None, expires=True)}, {"green": 1})
    monkeypatch.setattr(copy_loop, "ClusterAdmin", lambda _: None)
    monkeypatch.setattr(copy_loop, "rules_of", lambda *_: rules)
    monkeypatch.setattr(copy_loop, "CopyClients", lambda *_: Clients(world))
    nobody: Any = SimpleNamespace(copy_group="", green="green")
    return CopyWorker(nobody, nobody, units_of([MOVE]), LIVE)


def stuck() -> StuckCall:
    return StuckCall("copy of blue-0", "send_offsets_to_transaction", 12.0)


def test_clients_with_a_call_that_does_not_return_are_replaced_and_it_is_told(
    worker: CopyWorker, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.outcomes = [7, stuck(), 9]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            worker.step()
    first, second = world.opened
    assert first.is_abandoned
    assert not second.is_abandoned
    assert "copy of blue-0: found send_offsets_to_transaction without an answer for 12 s" in caplog.text
    assert worker.commits.has_rewound
    assert worker.writers[SOURCE].restart.offset == 9


def test_where_new_clients_do_not_help_it_is_an_outage(worker: CopyWorker, world: World) -> None:
    world.outcomes = [7, stuck(), stuck()]
    worker.step()
    worker.step()
    with pytest.raises(StuckCall):
        worker.step()
    assert len(world.opened) == 2


def test_after_progress_clients_are_replaced_again(worker: CopyWorker, world: World) -> None:
    world.outcomes = [7, stuck(), 9, stuck(), 11]
    for _ in range(5):
        worker.step()
    assert len(world.opened) == 3


def test_a_newer_worker_is_not_fenced_by_new_clients(worker: CopyWorker, world: World) -> None:
    world.outcomes = [7, stuck()]
    world.newer = Fenced("copy", found="another", expected="to be the newest", remedy="Nothing.")
    worker.step()
    with pytest.raises(Fenced):
        worker.step()
    assert len(world.opened) == 1
