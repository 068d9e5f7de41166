"""Measures an expansion by the number of partitions: five stores of little state, and a stand-in application.

`python -m benchmarks.partitions --partitions 8 200 1000` runs one expansion after the other, each on a broker of
its own, and prints what takes how long. Restore, proof and catch_up are the real jobs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.expansion.run import tasks_of
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from rich.console import Console
from rich.table import Table

from benchmarks.copied_topic import fill
from benchmarks.machine import machine
from benchmarks.stand_in import main as stand_in
from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.jars import ensure_jars

NAME, INPUT = "wide", "wide-input"
STORES = tuple(f"store-{number}" for number in range(5))
RECORDS = 50_000
"""The number of records of each store, whatever its partitions."""
OF_THE_APPLICATION = ("quiesce", "start", "restore", "first_output")
"""The parts of the pause in which the stand-in joins or leaves its group."""
PATIENCE = 3600.0
console = Console(highlight=False)


def application_of(partitions: int, servers: str, directory: Path) -> Application:
    """Return an application with five stores. It is expanded by a quarter of its partitions."""
    command = f"{sys.executable} -m benchmarks.stand_in {{}} {{{{application_id}}}} {servers} {INPUT} {directory}"
    return Application.model_validate(
        {
            "application_id": NAME,
            "partitions": partitions * 5 // 4,
            "inputs": [{"topic": INPUT, "policy": "paused"}],
            "outputs": [],
            "topology": _topology(),
            "stores": [{"name": store, "type": "timestamped-key-value"} for store in STORES],
            "lifecycle": {
                "type": "shell",
                **{name: command.format(name) for name in ("start", "stop", "status")},
            },
        }
    )


def _topology() -> str:
    return (
        "Topologies:\n   Sub-topology: 0\n"
        f"    Source: source (topics: [{INPUT}])\n      --> work\n"
        f"    Processor: work (stores: [{', '.join(STORES)}])\n      --> none\n      <-- source\n"
    )


@contextmanager
def world(directory: Path, partitions: int) -> Iterator[Expansion]:
    """A broker with state in so many partitions, and the running stand-in."""
    with EmbeddedBroker(directory / "broker", heap="2g") as broker:
        connection = KafkaConnection(broker.client_config())
        admin = ClusterAdmin(connection)
        admin.ensure_topic(INPUT, partitions, 1, {})
        fill(connection, INPUT, RECORDS // 10, partitions)
        for store in STORES:
            admin.ensure_topic(f"{NAME}-{store}-changelog", partitions, 1, {"cleanup.policy": "compact"})
            fill(connection, f"{NAME}-{store}-changelog", RECORDS, partitions)
        admin.commit(NAME, admin.end_offsets([INPUT]))
        servers = broker.bootstrap_servers
        application = application_of(partitions, servers, directory)
        expansion = Expansion(directory, application, connection, patience=PATIENCE)
        stand_in("start", NAME, servers, INPUT, str(directory))
        try:
            yield expansion
        finally:
            for generation in (NAME, f"{NAME}-g2"):
                stand_in("stop", generation, servers, INPUT, str(directory))


def measure(directory: Path, partitions: int) -> dict[str, Any]:
    """Expand once, and return the seconds of each task, of each part of the pause, and of the jobs themselves."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with world(directory, partitions) as expansion:
        tasks: dict[str, float] = {}
        with _timed(tasks, "preflight and begin"):
            plan = expansion.begin()
        _follow(expansion, plan, tasks)
        report = expansion.state().report
        jobs: dict[str, JobResult] = dict(expansion.state().results)
        return {
            "partitions": partitions,
            "source_partitions": partitions * len(STORES),
            "tasks": tasks,
            "pause": dict(expansion.timings),
            "jobs": {name: result.seconds for name, result in sorted(jobs.items())},
            "verified": bool(report["passed"]),
        }


def _follow(expansion: Expansion, plan: Plan, tasks: dict[str, float]) -> None:
    for task in tasks_of(expansion.application.mode, [stage.name for stage in plan.stages]):
        with _timed(tasks, task.step.task):
            expansion.do(task, plan)
        console.print(f"[dim]{plan.partitions_before} partitions: {task.step.task} {tasks[task.step.task]} s")


@contextmanager
def _timed(tasks: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    tasks[name] = round(tasks.get(name, 0.0) + time.monotonic() - began, 2)


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Return the tasks and the parts of the pause as a table with a column for each number of partitions."""
    table = Table("seconds", *(f"{len(STORES)} × {row['partitions']}" for row in rows))
    for group in ("tasks", "jobs", "pause"):
        names = list(dict.fromkeys(name for row in rows for name in row[group]))
        for name in names:
            table.add_row(f"{group}: {name}", *(str(row[group].get(name, "")) for row in rows))
        table.add_section()
    own = [sum(s for part, s in row["pause"].items() if part in OF_THE_APPLICATION) for row in rows]
    table.add_row(
        "pause without the application's own parts",
        *(f"{row['pause']['total'] - seconds:.2f}" for row, seconds in zip(rows, own, strict=True)),
    )
    return table


def main(arguments: list[str] | None = None) -> int:
    """The command line. It returns 1 if an expansion was not verified."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitions", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=(8, 200, 1000), help="of each store")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "var" / "partitions", help="scratch, emptied first"
    )
    parser.add_argument("--out", type=Path, help="a file for the figures as JSON")
    options = parser.parse_args(arguments)
    ensure_jars("connector")
    before = machine()
    rows = [measure(options.directory.resolve() / str(count), count) for count in options.partitions]
    console.print(table_of(rows), before)
    if options.out:
        options.out.write_text(json.dumps({"machine": before, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
