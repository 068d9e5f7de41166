"""A live application on a broker of its own, and an expansion of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.cluster import EmbeddedCluster
from testbed.expansion import ROOT, Expansion
from testbed.flights_stack import RUN, FlightsStack, environment_of
from testbed.processes import end_with_parent, wait_until
from tests.support.kills import kill_session
from tests.support.verify.spark_of_tests import run_here

FILE = ROOT / "applications" / "flights.yaml"
FLIGHTS = 9_000
TWO_INSTANCES = Path(__file__).with_name("two_instances.sh")
BROKERS_DEFAULT = {"group.initial.rebalance.delay.ms": "3000"}
PROMPT = {"FLIGHTS_OPTIONS": "--commit-interval-ms 500"}
"""A short commit interval. With at-least-once, the cache emits output at a commit, by default every 30 s.
A test would wait three times for such a commit.
"""
World = tuple[FlightsStack, Expansion]


@contextmanager
def live_application(
    directory: Path,
    *,
    rate: float,
    guarantee: str = "at_least_once",
    settings: Mapping[str, str] | None = None,
    two_instances: bool = False,
    changes: Mapping[str, Any] | None = None,
    cluster: EmbeddedBroker | EmbeddedCluster | None = None,
) -> Iterator[World]:
    """The flights application at work, and an expansion of it to 8 partitions.

    :param rate: flights per second that arrive at first. Later they become fewer, so that some are left at the
        end.
    :param settings: further ``FLIGHTS_…`` variables of ``run.sh``. By default the application commits often.
    :param two_instances: run it as two processes with local state of their own, on a broker that waits for both to
        join.
    :param changes: changed fields of the application file.
    :param cluster: brokers that already run. By default, one broker is started.
    """
    properties = BROKERS_DEFAULT if two_instances else {}
    program = TWO_INSTANCES if two_instances else RUN
    own = EmbeddedBroker(directory / "broker", heap="512m", properties=properties)
    with own if cluster is None else nullcontext(cluster) as broker:
        stack = FlightsStack(
            directory / "flights",
            broker.bootstrap_servers,
            guarantee=guarantee,
            preload=FLIGHTS // 2,
            rate=rate,
            limit=FLIGHTS,
            lasting=True,
            settings=PROMPT if settings is None else settings,
            program=program,
        )
        with environment_of(stack):
            try:
                stack.start_replay()
                stack.await_sent(FLIGHTS // 2)
                assert stack.run("start") == 0
                changed = {"lifecycle": lifecycle_of(program), **(changes or {})}
                expansion = Expansion.of_file(
                    FILE, broker.bootstrap_servers, directory / "run", changed, runner=run_here
                )
                admin = ClusterAdmin(expansion.connection)
                wait_until(
                    lambda: sum(admin.end_offsets(["aircraft-totals-output"])["aircraft-totals-output"].values()),
                    timeout=120,
                    what="the first output",
                )
                yield stack, expansion
            finally:
                stack.stop("flights", "flights-g2")
                for process in expansion.processes:
                    kill_session(process.pid)


def lifecycle_of(program: Path) -> dict[str, str]:
    """Return the lifecycle of the application file, by commands of a program."""
    commands = ("start", "start_gated", "start_held", "stop", "status")
    words = {name: name.replace("_", "-") for name in commands}
    return {"type": "shell", **{name: f"{program} {word} {{application_id}}" for name, word in words.items()}}


def journal_of(expansion: Expansion) -> Journal:
    journal = expansion.state().journal
    assert journal is not None
    return journal


def operation_process(
    expansion: Expansion, operation: str, file: Path = FILE, stops_held_by: Path | None = None
) -> subprocess.Popen[bytes]:
    """Run an operation in a process of its own, as an Airflow task does.

    :param operation: ``module:function`` of ``kafka_rescale.operations``, such as ``cutover.cutover:run_cutover``.
    :param file: the application file that the process reads.
    :param stops_held_by: a file. While it exists, no ``stop`` of the operation returns.
    """
    module, _, function = operation.partition(":")
    late = "from tests.support.expansion.late_stop import hold_stops; from pathlib import Path;"
    script = (
        f"import sys; from kafka_rescale.operations.{module} import {function};"
        f"{'' if stops_held_by is None else f'{late}hold_stops(Path({str(stops_held_by)!r}));'}"
        "from kafka_rescale.operations.application.load import load_application;"
        "from kafka_rescale.kafka.client.connection import KafkaConnection;"
        f"{function}(load_application(sys.argv[1]), KafkaConnection({{'bootstrap.servers': sys.argv[2]}}),"
        " owner=sys.argv[3])"
    )
    command = [sys.executable, "-c", script, str(file), expansion.connection.config["bootstrap.servers"]]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen([*command, expansion.owner], env=environment, start_new_session=True)
    end_with_parent(process.pid)
    expansion.processes.append(process)
    return process


@contextmanager
def cutover_in_its_stop(expansion: Expansion, file: Path = FILE) -> Iterator[subprocess.Popen[bytes]]:
    """Run a cutover whose ``stop`` of the old generation returns only behind the ``with`` block.

    What a test does within the block is done before the rest of the pause, however fast that is.
    """
    held = expansion.directory / "stop.held"
    held.touch()
    try:
        process = operation_process(expansion, "cutover.cutover:run_cutover", file, stops_held_by=held)
        wait_until(
            lambda: journal_of(expansion).stop_asked or process.poll() is not None,
            timeout=240,
            what="the cutover to stop the old generation",
        )
        yield process
    finally:
        held.unlink()
