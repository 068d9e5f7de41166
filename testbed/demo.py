"""The demo on one machine: a live application goes from 4 to 8 partitions through Airflow, and is proven.

It has a broker, the flights application with its replayed input, Airflow, and the expansion DAG with its Spark
jobs. All of them are real, work in one directory, and are ended when the demo ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from rich.console import Console

from testbed.airflow_standalone import AirflowStandalone
from testbed.cluster import brokers_on
from testbed.demo_progress import follow_run
from testbed.demo_report import Outcome, print_report
from testbed.demo_timeline import timeline
from testbed.flights_stack import FlightsStack
from testbed.pictures import screenshot
from testbed.processes import wait_until
from testbed.removal import remove_first_record

ROOT = Path(__file__).resolve().parents[1]
DAG = "expand_flights"
BLUE, GREEN = "flights", "flights-g2"
MARKER = ".demo"
"""This file marks a directory that a demo has made, so that the next demo may empty it."""

console = Console(highlight=False, record=True, width=None if sys.stdout.isatty() else 118)


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    :param directory: directory of everything that the demo writes.
    :param preload: number of flights that the application processes before the expansion begins.
    :param rate: flights per second after that.
    :param remove_record: whether to remove a record of the new generation before the cutover, to see verify find
        that.
    :param keep: whether to leave everything running at the end, until Enter is pressed.
    :param brokers: how many brokers; several have replicas and a controller quorum.
    """

    directory: Path
    guarantee: str
    target: int
    preload: int
    rate: float
    limit: int | None = None
    remove_record: bool = False
    keep: bool = False
    port: int | None = None
    brokers: int = 1


def run(options: Options) -> int:
    """Run the demo and return its exit code: 0 only if everything was compared and was equal."""
    empty(options.directory)
    with environment(options) as (stack, airflow):
        console.print(f"\n[bold]Airflow's UI:[/bold] {airflow.url}/dags/{DAG}   (no password)\n")
        await_live(stack, options)
        run_id = airflow.client.trigger(
            DAG, {"target": options.target, "dry_run": False, "approve_cutover": False}
        )
        console.print(f"Triggered [bold]{DAG}[/bold], run {run_id}: 4 → {options.target} partitions")
        if options.remove_record:
            airflow.client.wait_for_task(DAG, run_id, "prove", states={"queued", "running", "failed"}, timeout=480)
            removed = remove_first_record(KafkaConnection(stack.client), f"{GREEN}-planes-changelog")
            console.print(f"[red]Removed the record of key {removed!r} from {GREEN}-planes-changelog[/red]")
        state = follow_run(console, airflow.client, DAG, run_id, stack)
        outcome = conclude(stack, airflow, run_id, state)
        screenshot(f"{airflow.url}/dags/{DAG}/runs/{run_id}", options.directory / "graph.png")
        console.save_text(str(options.directory / "run.txt"))
        print_report(console, outcome, options.directory)
        console.save_svg(str(options.directory / "report.svg"), title=f"{DAG}, run {run_id}")
        if options.keep:
            console.input(f"Airflow is still up at {airflow.url}. Press Enter to end. ")
    return 0 if outcome.passed else 1


def empty(directory: Path) -> None:
    """Make an empty directory for a demo, in place of an earlier demo's.

    :raises SystemExit: the directory holds something else.
    """
    marker = directory / MARKER
    if directory.exists() and not marker.exists() and any(directory.iterdir()):
        raise SystemExit(
            f"{directory} is not empty, and no demo has made it: name another --directory, or empty it yourself."
        )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    marker.touch()


@contextmanager
def environment(
    options: Options,
    applications: Path = ROOT / "applications",
    *,
    pinned: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[tuple[FlightsStack, AirflowStandalone]]:
    """Start everything, and end it afterwards, whatever happens.

    :param applications: directory of the application files; it has the file of the flights.
    :param pinned: whether flights never go to partitions that are added meanwhile.
    :param settings: further ``FLIGHTS_…`` variables of ``run.sh``.
    """
    with brokers_on(options.directory / "broker", options.brokers) as kafka, ThreadPoolExecutor() as pool:
        console.print(f"Kafka, {told(options.brokers)}, at {kafka.bootstrap_servers}")
        stack = FlightsStack(
            options.directory / "flights",
            kafka.bootstrap_servers,
            guarantee=options.guarantee,
            preload=options.preload,
            rate=options.rate,
            limit=options.limit,
            lasting=True,
            pinned=pinned,
            settings=settings or {},
        )
        airflow = AirflowStandalone(
            options.directory / "airflow",
            connections={
                "kafka_default": {"conn_type": "kafka", "extra": stack.client},
                "spark_default": {"conn_type": "spark", "host": "local[2]"},
            },
            env={**stack.environment, "KAFKA_RESCALE_APPLICATIONS": str(applications)},
            port=options.port,
        )
        try:
            starting = pool.submit(airflow.start)
            stack.start_replay()
            stack.await_sent(1)
            if stack.run("start") != 0:
                raise SystemExit(f"the flights application did not start, see {stack.directory}")
            with console.status("Airflow is starting; the application reads its first flights"):
                starting.result()
            yield stack, airflow
        finally:
            airflow.stop()
            stack.stop(BLUE, GREEN)


def told(brokers: int) -> str:
    """Return a number of brokers as text."""
    return "one broker" if brokers == 1 else f"{brokers} brokers with {brokers} replicas of everything"


def await_live(stack: FlightsStack, options: Options) -> None:
    """Return when the application has worked off the preloaded flights and follows the replay."""
    admin = ClusterAdmin(KafkaConnection(stack.client))

    def behind() -> int:
        ends, committed = admin.end_offsets(["flights"])["flights"], admin.committed(BLUE).get("flights", {})
        return sum(end - committed.get(p, 0) for p, end in ends.items())

    with console.status(f"The application processes {options.preload:,} flights"):
        stack.await_sent(options.preload)
        wait_until(lambda: behind() < 5 * options.rate + 1000, timeout=300, what="the application to catch up")
    console.print(f"The application is live: {stack.sent():,} flights sent, {behind():,} not yet processed")


def conclude(stack: FlightsStack, airflow: AirflowStandalone, run_id: str, state: str) -> Outcome:
    """Collect the evidence: Airflow's order of tasks, the report, and the final aggregates."""
    control = ControlTopic(KafkaConnection(stack.client), BLUE).read()
    differences: list[str] = []
    counts: dict[str, int] = {}
    was_live = stack.is_replaying()
    if state == "success":
        with console.status("Sending the rest of the year at full speed, then comparing the final aggregates"):
            stack.finish_replay()
            with suppress(TimeoutError):  # the comparison below reports the differences that are left
                stack.await_equal(GREEN)
        comparison = stack.compare(GREEN)
        differences, counts = comparison.differences, comparison.counts
    return Outcome(
        run_id=run_id,
        state=state,
        tasks=timeline(airflow.client, DAG, run_id, control.results),
        proof=dict(control.proof),
        is_promoted=control.journal is not None and control.journal.is_promoted,
        report=dict(control.report),
        timings=dict(control.journal.timings) if control.journal else {},
        prewarmed=dict(control.journal.prewarmed) if control.journal else {},
        flights=stack.sent(),
        was_live=was_live,
        compared=counts,
        differences=differences,
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--directory",
        type=Path,
        default=ROOT / "var" / "demo",
        help="directory of everything; the directory of an earlier demo is emptied",
    )
    parser.add_argument("--guarantee", choices=["at_least_once", "exactly_once_v2"], default="exactly_once_v2")
    parser.add_argument("--target", type=int, default=8)
    parser.add_argument("--preload", type=int, default=200_000)
    parser.add_argument("--rate", type=float, default=300)
    parser.add_argument("--limit", type=int, help="only the first so many flights of the year")
    parser.add_argument("--port", type=int, help="port of Airflow's UI; a free one if omitted")
    parser.add_argument(
        "--brokers", type=int, choices=[1, 3], default=1, help="3: with replicas, as in production"
    )
    parser.add_argument("--remove-record", action="store_true", help="sabotage: the proof must find it")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Enter is pressed")
    return run(Options(**vars(parser.parse_args(arguments))))


if __name__ == "__main__":
    sys.exit(main())
