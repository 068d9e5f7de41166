"""Functions for ``on_partition_expansion`` beside a live application. Each call writes down what it finds."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

ROOT = Path(__file__).resolve().parents[3]
CALLS, APPLICATION = "CALLBACK_CALLS", "CALLBACK_APPLICATION"
"""Environment variables: the file that gets a line for each call, and the base name of the application."""


@dataclass(frozen=True)
class Call:
    """A call, and what it found.

    :param phase: of the journal.
    :param counts: partitions of every topic of the new generation, and of its inputs and outputs.
    :param group: state of the new generation's group.
    :param has_effect: whether this is the first call for this expansion.
    """

    old: int
    new: int
    expansion_id: str
    process: int
    phase: str
    counts: dict[str, int]
    group: str
    has_effect: bool


def settings(calls: Path, application: str) -> dict[str, str]:
    """Return the environment of an Airflow whose tasks find these functions."""
    return {CALLS: str(calls), APPLICATION: application, "PYTHONPATH": f"{ROOT / 'plugins'}:{ROOT}"}


def calls_in(file: Path) -> list[Call]:
    """Return the calls that a file has, in their order."""
    return [Call(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def note(old: int, new: int, *, expansion_id: str) -> None:
    """Have one effect per expansion, however often it is called."""
    _note(old, new, expansion_id)


def note_and_die_once(old: int, new: int, *, expansion_id: str) -> None:
    """Have one effect per expansion. The process is killed in the first call, before the journal can record it."""
    if _note(old, new, expansion_id) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def note_and_die(old: int, new: int) -> None:
    """Have an effect per call, because there is no token.

    The process is killed before the journal can record a call.
    """
    _note(old, new, "")
    os.kill(os.getpid(), signal.SIGKILL)


def _note(old: int, new: int, expansion_id: str) -> int:
    """Append a call to the file, and return its number."""
    file = Path(os.environ[CALLS])
    before = calls_in(file)
    connection = KafkaConnection({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]})
    journal = ControlTopic(connection, os.environ[APPLICATION]).read().journal
    assert journal is not None
    plan, admin = journal.plan, ClusterAdmin(connection)
    outputs = [growth.topic for stage in plan.stages for growth in stage.grow_outputs]
    topics = [*(i.green_topic for i in plan.inputs), *outputs, *(move.target for move in plan.moves)]
    call = Call(
        old,
        new,
        expansion_id,
        process=os.getpid(),
        phase=journal.phase,
        counts={name: topic.partitions for name, topic in admin.describe_topics(topics).items()},
        group=admin.describe_group(plan.green).state,
        has_effect=not any(each.expansion_id == expansion_id for each in before),
    )
    with file.open("a") as lines:
        lines.write(f"{json.dumps(asdict(call))}\n")
    return len(before) + 1
