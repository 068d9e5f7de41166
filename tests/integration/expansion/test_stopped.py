"""``stopped``: a person says that a program has ended. If this is wrong, it is found."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import wait_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.expansion import stopped

from tests.support.small_application import write
from tests.support.small_cluster import make, run_preflight

pytestmark = pytest.mark.integration
MANUAL = {"type": "manual", "instructions": "the dashboard"}
HALF_AN_HOUR_MS = 1_800_000


class Shop:
    """An application that a person starts and stops, and the members that may be in its groups."""

    def __init__(self, client: Mapping[str, str], name: str, directory: Path) -> None:
        self.client, self.name, self.directory = client, name, directory
        self.admin = ClusterAdmin(KafkaConnection(dict(client)))
        make(client, name)
        self.file = write(directory, name, lifecycle=MANUAL)
        self.config = directory / "client.properties"
        self.config.write_text("".join(f"{k} = {v}\n" for k, v in client.items()))

    def say(self, *more: str) -> int:
        """Say by the command that it has been stopped."""
        return main(["stopped", str(self.file), "--config", str(self.config), *more])

    def remember(self, phase: Phase, **fields: Any) -> Journal:
        """Write an expansion in a phase to the control topic."""
        plan = run_preflight(self.client, self.directory, self.name, lifecycle=MANUAL).plan
        assert plan is not None
        journal = Journal(plan=plan, phase=phase, **fields)
        ControlTopic(KafkaConnection(dict(self.client)), self.name).update(lambda _: {Concern.JOURNAL: journal})
        return journal

    def members(self, group: str) -> tuple[str, ...]:
        """The members of a group."""
        return self.admin.describe_group(group).members

    def join(self, group: str, **settings: Any) -> Consumer:
        """A consumer that has joined a group."""
        patient = {name: HALF_AN_HOUR_MS for name in ("session.timeout.ms", "max.poll.interval.ms")}
        consumer = Consumer({**self.client, "group.id": group, **patient, **settings})
        consumer.subscribe([f"{self.name}-orders"])

        def joined() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(joined, seconds=60, what="a member to join", remedy="See the broker.")
        return consumer

    def leave_behind(self, group: str) -> None:
        """Join, and end without leaving the group, as Kafka Streams does."""
        self.join(group, **{"group.instance.id": f"{group}-1"}).close()
        assert self.members(group)


@pytest.fixture
def shop(client: Mapping[str, str], unique: str, tmp_path: Path) -> Shop:
    """An application without an expansion."""
    return Shop(client, unique, tmp_path)


def test_of_a_stopped_blue_nothing_is_left(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.remember(Phase.QUIESCING, stop_asked=True)
    shop.leave_behind(shop.name)
    assert shop.say() == PASSED
    assert f"group {shop.name}: 1 members removed, and no member has come back" in capsys.readouterr().out
    assert not shop.members(shop.name)
    assert shop.say() == PASSED
    assert f"group {shop.name}: it has no members" in capsys.readouterr().out


def test_one_that_lives_is_found(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.remember(Phase.QUIESCING, stop_asked=True)
    alive, over = shop.join(shop.name, **{"heartbeat.interval.ms": 3000}), Event()

    def live() -> None:
        while not over.is_set():
            with suppress(KafkaException):
                alive.poll(0.1)

    thread = Thread(target=live)
    thread.start()
    try:
        assert shop.say() != PASSED
    finally:
        over.set()
        thread.join(30)
        alive.close()
    assert f"group {shop.name}: found 1 of its members again after they were removed" in capsys.readouterr().err


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for members that come back. Here, no member can."""
    monkeypatch.setattr(stopped, "REJOIN_SECONDS", 0.5)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("phase", "fields", "whose"),
    [
        (Phase.WARMING, {"gate_ends": {"any": {0: 1}}}, "green"),
        (Phase.ROLLING_BACK, {"gate_ends": {"any": {0: 1}}}, "green"),
        (Phase.ROLLING_BACK, {"stop_asked": True}, "blue"),
        (Phase.ROLLING_BACK, {"stop_asked": True, "held": 7}, "blue"),
        (Phase.ROLLING_BACK, {"stop_asked": True, "stopped_again": True, "held": 7}, "green"),
        (Phase.PROMOTED, {"stop_asked": True, "green_start": {"any": {0: 1}}}, "green"),
    ],
)
def test_which_stop_was_asked_for(shop: Shop, phase: Phase, fields: dict[str, Any], whose: str) -> None:
    plan = shop.remember(phase, **fields).plan
    for group in (plan.blue, plan.green):
        shop.leave_behind(group)
    assert shop.say() == PASSED
    left = {name for name, group in (("blue", plan.blue), ("green", plan.green)) if shop.members(group)}
    assert left == {"blue", "green"} - {whose}


ASKED: dict[str, Any] = {"stop_asked": True}


@pytest.mark.parametrize(
    ("phase", "fields"),
    [
        (Phase.WARMING, {}),
        (Phase.QUIESCING, {"held": 7}),
        (Phase.QUIESCED, ASKED),
        (Phase.CAUGHT_UP, {**ASKED, "held": 7}),
        (Phase.PROMOTED, {**ASKED, "held": 7}),
        (Phase.STARTED, {**ASKED, "held": 7}),
        (Phase.VERIFIED, ASKED),
        (Phase.COMPLETE, ASKED),
        (Phase.ROLLING_BACK, {}),
        (Phase.ROLLING_BACK, {**ASKED, "stopped_again": True}),
        (Phase.ROLLED_BACK, ASKED),
    ],
)
def test_a_word_that_comes_late_touches_nothing(
    shop: Shop, phase: Phase, fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = shop.remember(phase, **fields).plan
    for group in (plan.blue, plan.green):
        shop.leave_behind(group)
    assert shop.say() == PASSED
    told = capsys.readouterr().out
    assert "The task has seen that already: start and stop nothing" in told
    assert "if it is down, start it" not in told
    assert shop.members(plan.blue)
    assert shop.members(plan.green)


def test_what_was_started_while_it_looked_is_not_to_be_stopped(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shop.remember(Phase.ROLLING_BACK, stop_asked=True).plan
    shop.leave_behind(plan.blue)

    def started(*_: object) -> tuple[str, ...]:
        shop.remember(Phase.ROLLING_BACK, stop_asked=True, stopped_again=True)
        return ("blue-1",)

    monkeypatch.setattr(ClusterAdmin, "remove_members", started)
    assert shop.say() == PASSED
    assert "no step waits for a stop" in capsys.readouterr().out


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("phase", "fields", "is_held"),
    [(Phase.QUIESCING, {}, True), (Phase.QUIESCING, ASKED, False), (Phase.COMPLETE, {}, False)],
)
def test_held_as_the_producer_of_another_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, phase: Phase, fields: dict[str, Any], is_held: bool
) -> None:
    running, reader = f"{shop.name}-g2", f"{shop.name}-reader"
    plan = shop.remember(Phase.COMPLETE).plan
    generations = Generations(running=running, generation=2, partitions=8)
    ControlTopic(shop.admin.connection, shop.name).update(lambda _: {Concern.GENERATIONS: generations})
    read = {"topic": f"{reader}-customers", "policy": "paused", "producers": {"application": shop.name}}
    inputs = [{"topic": f"{reader}-orders", "policy": "unkeyed"}, read]
    (files := shop.directory / "files").mkdir()
    write(files, reader, inputs=inputs)
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(files))
    journal = Journal(plan=plan, phase=phase, **fields)
    ControlTopic(shop.admin.connection, reader).update(lambda _: {Concern.JOURNAL: journal})
    shop.leave_behind(running)
    assert shop.say() == PASSED
    assert bool(shop.members(running)) is not is_held


def test_stops_that_are_not_a_persons(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    write(shop.directory, shop.name)
    shop.leave_behind(shop.name)
    assert shop.say() != PASSED
    assert "found type shell; expected type manual, where a person stops the program" in capsys.readouterr().err
    assert shop.members(shop.name)
