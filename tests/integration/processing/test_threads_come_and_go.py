"""Threads are added, removed and killed at random under load. Names, states and results stay right (KIP-663)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.assignment.thread_states import ThreadState
from kafka_rescale.core.pipeline import LONG
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application

from testbed.broker import EmbeddedBroker
from tests.support.processing.coming_and_going import ADD, KILL, REMOVE, Runs, next_events
from tests.support.processing.inline_jobs import run_all
from tests.support.processing.thread_model import Client
from tests.support.processing.word_load import PARTITIONS, Load
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration

SEED = 663
PER_SECOND = 300


@pytest.fixture
def runs(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Runs:
    connection = KafkaConnection(broker.client_config())
    admin = ClusterAdmin(connection)
    admin.delete_topics(["lines", "counted"])
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, PARTITIONS, 1, {"retention.ms": "-1"})
    file = write_pipeline(tmp_path, application_id=unique, **{"num.stream.threads": 2})
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    client = Client(unique, dict.fromkeys((1, 2), ThreadState.STARTING))
    return Runs(load_pipeline_application(file), connection, chance, client)


def written(connection: KafkaConnection, topic: str) -> dict[bytes, list[int]]:
    """All counts of every word, in the order of the log."""
    ends = ClusterAdmin(connection).end_offsets([topic])[topic]
    found: dict[bytes, list[int]] = {}
    for message in read_ranges(connection, topic, {p: (0, end) for p, end in ends.items()}):
        key: Any = message.key()
        value: Any = message.value()
        found.setdefault(key, []).append(LONG.decode(value[-8:]))
    return found


def come_and_go(runs: Runs, times: int) -> None:
    """Let each kind of event happen so often. Then compare all results with the input."""
    left = [ADD, REMOVE, KILL] * times
    runs.chance.shuffle(left)
    load = Load(runs.connection, "lines", PER_SECOND)
    with load.running():
        runs.run([])
        while left:
            alive = [s for s in runs.client.states.values() if s is not ThreadState.PENDING_SHUTDOWN]
            events = next_events(left, len(alive), runs.chance)
            runs.run(events)
            left += events
    assert runs.done == {ADD: times, REMOVE: times, KILL: times}
    run_all(runs.application, runs.connection, "process/last")
    counted = written(runs.connection, "counted")
    assert counted == {word: list(range(1, number + 1)) for word, number in load.written.items()}
    logged = written(runs.connection, f"{runs.application.application_id}-counts-changelog")
    assert Counter({word: counts[-1] for word, counts in logged.items()}) == load.written
    assert sum(load.written.values()) > PER_SECOND


def test_names_states_and_results_stay_right(runs: Runs) -> None:
    come_and_go(runs, times=2)


@pytest.mark.slow
def test_names_states_and_results_stay_right_a_hundred_times(runs: Runs) -> None:
    come_and_go(runs, times=100)
