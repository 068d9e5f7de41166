"""The only broker is frozen within the pause. The cutover or its rollback goes on when it answers again."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.cutover import start_green
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion import rescale as rescale_module
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.modes import blue_green
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.broker import EmbeddedBroker
from tests.support.expansion.gate_world import MOVE
from tests.support.expansion.gate_world import PLAN as WITH_INPUTS
from tests.support.small_application import application
from tests.support.small_cluster import create
from tests.support.verify.proofs import proof_of, rolling_of

pytestmark = pytest.mark.integration
OWNER = "a test"
PLAN = WITH_INPUTS.model_copy(update={"inputs": ()})
AWAY_SECONDS = 35.0
"""Longer than the timeout of one request, or of one reading of the control topic."""


class World:
    """An application that is stopped for its cutover. Its broker is frozen while the cutover waits for the delta.

    :param running: the generations that its lifecycle has started.
    """

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker, self.running = broker, set[str]()
        self.connection = KafkaConnection(broker.client_config())
        self.control = ControlTopic(self.connection, PLAN.application)
        self.thawed = threading.Event()
        self._await_copied, self._frozen = blue_green.await_copied, False
        create(broker.client_config(), [NewTopic(MOVE.source, 1, 1), NewTopic(MOVE.target, 2, 1)])
        self.control.ensure()
        captured = Captured(changelog_ends={MOVE.source: {0: 0}})
        journal = Journal(
            plan=PLAN,
            phase=Phase.QUIESCED,
            owner=OWNER,
            captured=captured,
            stop_asked=True,
            pause_started_ms=now_ms(),
        )
        lease = Lease(owner=OWNER, epoch=1, target=2, expires_at_ms=2**62)
        ids = {MOVE.target: ClusterAdmin(self.connection).describe_topics([MOVE.target])[MOVE.target].topic_id}
        proof, rolling = (
            each.model_copy(update={"fences": each.fences.model_copy(update={"green_topics": ids})})
            for each in (proof_of(journal), rolling_of(journal))
        )
        proofs = {Concern.PROOF: proof, Concern.ROLLING_PROOF: rolling}
        self.control.update(lambda _: {Concern.JOURNAL: journal, Concern.LEASE: lease, **proofs})

    @property
    def journal(self) -> Journal:
        journal = self.control.read().journal
        assert journal is not None
        return journal

    @property
    def lifecycle(self) -> Any:
        return SimpleNamespace(
            start=lambda instance: self.running.add(instance.application_id),
            stop=lambda instance: self.running.discard(instance.application_id),
            is_running=lambda instance: instance.application_id in self.running,
        )

    def freeze(self, *arguments: Any) -> None:
        """A stand-in for ``await_copied``: freeze the broker first."""
        if not self._frozen:
            self._frozen = True
            self.be_away()
        self._await_copied(*arguments)

    def be_away(self) -> None:
        """Freeze the broker, and let another thread bring it back."""
        self.broker.freeze()
        threading.Timer(AWAY_SECONDS, self._thaw).start()

    def _thaw(self) -> None:
        self.broker.thaw()
        self.thawed.set()

    def work(self, over: threading.Event) -> None:
        """Do what a driver of ``catch_up`` does: give signs of life, and a last result when the broker is back."""
        job = Job("catch_up", Arguments(application=PLAN.application, run=OWNER, attempt=1), self.connection)
        while not over.is_set():
            try:
                if self.thawed.is_set():
                    job.put("done", detail="attempt 1")
                    return
                job.put("ready")
            except Outage as outage:
                print(f"no report: {outage}")
            time.sleep(0.5)

    @contextmanager
    def catch_up(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self.work, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        made = World(broker)
        monkeypatch.setattr(rescale_module, "lifecycle_of", lambda *_: made.lifecycle)
        monkeypatch.setattr(blue_green, "await_copied", made.freeze)
        monkeypatch.setattr(start_green, "outputs_now", lambda _: {})
        monkeypatch.setattr(start_green, "watch_first_output", lambda *_: {"restore": 0.0})
        yield made


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [line for line in caplog.messages if line.startswith("NOBODY PROCESSES the inputs of shop")]
    print(*lines, sep="\n")
    return lines


def test_within_the_limit_of_the_pause_it_ends_in_the_promotion(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with world.catch_up():
        run_cutover(application("shop"), world.connection, owner=OWNER)
    assert world.journal.phase is Phase.STARTED
    assert world.running == {PLAN.green}
    assert len(told(caplog)) > 3
    assert gc.get_freeze_count() == 0, "behind the promotion, garbage is looked for everywhere again"


@pytest.mark.slow
def test_beyond_it_blue_is_started_when_the_broker_answers(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    impatient = application("shop").model_copy(update={"max_pause_seconds": 10})
    with world.catch_up(), pytest.raises(Outage):
        run_cutover(impatient, world.connection, owner=OWNER)
    assert world.journal.phase is Phase.ROLLED_BACK, world.journal.told
    assert world.running == {PLAN.blue}
    assert told(caplog)


@pytest.mark.slow
def test_a_rollback_that_begins_while_it_is_away_starts_blue_when_it_answers(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.be_away()
    assert roll_back(application("shop"), world.connection, owner=OWNER, reason="a test").is_done
    assert world.thawed.is_set()
    assert world.journal.phase is Phase.ROLLED_BACK
    assert world.running == {PLAN.blue}
    unknown = "it is not known whether anything processes the inputs of shop: waiting for an answer of the control"
    assert sum(line.startswith(unknown) for line in caplog.messages) > 3
