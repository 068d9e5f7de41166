"""A killed task leaves the same as an uninterrupted one, wherever it dies. A task that wakes up late is fenced."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.processing.counted import Counted, write
from tests.support.processing.joined_pipeline import joined
from tests.support.processing.killed import FENCED, SECONDS, killed_run, lines_of_a_run, run_that_stops, started
from tests.support.processing.saved_state import saved_rows

pytestmark = pytest.mark.integration

ROUND = 60


@pytest.fixture
def counted(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Counted:
    connection = KafkaConnection(broker.client_config())
    application = Counted(connection, unique, tmp_path, partitions=1, made=joined)
    application.create()
    return application


def written(counted: Counted, number: int) -> None:
    """Write the input of one round.

    It is later than all previous rounds, except that every eleventh record is late.
    """
    records = []
    for at in range(number * ROUND, (number + 1) * ROUND):
        late = 150 if at % 11 == 10 else 0
        source, time_ms = ("right", "left")[at // 4 % 2], 1000 + 10 * at + 200 * number - late
        records.append((source, 0, b"k%d" % (at % 5), b"v%d" % at, time_ms))
    write(counted.connection, counted.name, records)


def kept_rows(counted: Counted) -> dict[str, list[dict[str, Any]]]:
    """The rows in the newest saved state of every store.

    Expired rows, which may still be in the files, are left out.
    """
    directory, name = str(counted.state_dir), counted.name
    return {
        kept.name: saved_rows(directory, name, "0_0", kept.name, Expiry.of(kept)) for kept in counted.part.stores
    }


def same_as_uninterrupted(counted: Counted, kills: int) -> None:
    """Kill so many runs, each with its own input. Then compare with one run over everything."""
    control = replace(counted, name=f"{counted.name}-control", inputs=counted.name)
    control.create()
    written(counted, 0)
    lines = lines_of_a_run(counted)
    killed = rounds = 0
    while killed < kills and rounds < 3 * kills:
        rounds += 1
        written(counted, rounds)
        killed += killed_run(counted, seed=rounds, lines=lines)
    assert killed == kills
    # A run that is killed after its last commit has saved nothing. Another run brings the files up to date.
    written(counted, rounds + 1)
    counted.run()
    control.run()
    assert counted.left() == control.left()
    compared = {topic: len(rows) for topic, rows in control.left().items()}
    assert len(compared) == 6, "a sink, and the stores of a window, a session and a join"
    assert min(compared.values()) > rounds, "there was something to compare"
    assert any(row[3] for row in control.left()["out-0"]), "headers, too"
    assert counted.committed() == control.committed()
    assert kept_rows(counted) == kept_rows(control)


def test_a_task_that_is_killed_leaves_exactly_once_results(counted: Counted) -> None:
    same_as_uninterrupted(counted, kills=5)


@pytest.mark.slow
def test_a_task_that_is_killed_at_a_hundred_places_leaves_exactly_once_results(counted: Counted) -> None:
    same_as_uninterrupted(counted, kills=100)


def test_a_run_that_wakes_up_within_its_transaction_is_fenced_and_changes_nothing(counted: Counted) -> None:
    written(counted, 0)
    zombie = started(run_that_stops, counted)
    try:
        stat = Path(f"/proc/{zombie.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", timeout=SECONDS, what="it stops")
        counted.run()
        finished, committed, rows = counted.left(), counted.committed(), kept_rows(counted)
        os.kill(zombie.pid, signal.SIGCONT)
        zombie.join(SECONDS)
        assert zombie.exitcode == FENCED
    finally:
        if zombie.is_alive():
            zombie.kill()
            zombie.join(SECONDS)
    assert counted.left() == finished
    assert all(finished.values()), "every topic has what the newer run has made"
    assert counted.committed() == committed
    assert kept_rows(counted) == rows
