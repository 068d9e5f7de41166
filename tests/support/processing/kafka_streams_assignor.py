"""Kafka Streams' own assignor, in a JVM of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_rescale.core.assignment.assignment import ClientTasks
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.tasks import Client, TaskId, Tasks

from testbed.jars import require_java
from tests.support.jvm_tests import class_path

Scenario = tuple[Tasks, Sequence[Client], AssignmentConfigs]
"""The input of one assignment, without tags."""


@dataclass(frozen=True)
class Decided:
    """The decision of Kafka Streams.

    :param seconds: time of the call itself.
    """

    clients: Mapping[str, ClientTasks]
    is_probing_rebalance_needed: bool
    seconds: float


def decide(scenarios: Iterable[Scenario], heap: str = "512m", timeout: int = 120) -> list[Decided]:
    """Let Kafka Streams assign all of them, one after the other.

    :param heap: heap size of the JVM.
    :param timeout: seconds for all assignments together.
    """
    _, *lines = _run([json.dumps(_written(*scenario)) for scenario in scenarios], heap, timeout)
    return [_read(json.loads(line)) for line in lines]


def state_changes() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The states of a client and of a thread, each with the states that may follow."""
    found = json.loads(_run([], "64m", 60)[0])
    return found["client"], found["thread"]


def _run(lines: Sequence[str], heap: str, timeout: int) -> list[str]:
    options = [f"-Xmx{heap}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command = [require_java(), *options, "-cp", class_path(), "Assignors"]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def _written(tasks: Tasks, clients: Sequence[Client], configs: AssignmentConfigs) -> dict[str, Any]:
    return {
        "acceptable": configs.acceptable_recovery_lag,
        "warm_ups": configs.max_warmup_replicas,
        "standbys": configs.num_standby_replicas,
        "stateful": {str(task): end for task, end in tasks.stateful.items()},
        "stateless": [str(task) for task in tasks.stateless],
        "clients": [
            {"id": c.id, "threads": c.threads, "lags": {str(task): lag for task, lag in c.lags.items()}}
            for c in sorted(clients, key=lambda client: client.id)
        ],
    }


def _read(found: Mapping[str, Any]) -> Decided:
    clients = {
        name: ClientTasks(*(tuple(map(TaskId.parse, has[role])) for role in ("active", "standby")))
        for name, has in found["clients"].items()
    }
    return Decided(clients, found["probing"], found["nanoseconds"] / 1e9)
