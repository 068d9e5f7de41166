"""Counts what Kafka Streams itself loses with exactly-once, without any expansion: see docs/broker-faults.md.

`python -m benchmarks.losses` runs each case once, and prints a row for it. ``--case NAME`` runs only this one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

from benchmarks.losing_application import OUTPUT, SHORT_SESSION_OF_BROKER, Feed, LosingApplication
from benchmarks.output_log import OutputLog, read_log
from testbed.broker import EmbeddedBroker

PARTITIONS = 10
RECORDS_PER_SECOND = 500
UP_SECONDS, DOWN_SECONDS = 12, 10
"""Longer than a session timeout, so that a rebalance follows each change."""


@dataclass(frozen=True)
class Case:
    """A way to run the application.

    :param stays: whether instance 1 stays while instance 2 comes and goes. Otherwise both are restarted.
    :param apart: seconds between the starts of both instances, if both are restarted.
    :param delay_ms: ``group.initial.rebalance.delay.ms`` of the broker.
    :param keeps_state: whether instances keep their local state.
    :param filled: whether the stores of windows have records.
    :param settings: of Kafka Streams.
    """

    stays: bool = False
    apart: float = 0.0
    delay_ms: int = 0
    keeps_state: bool = True
    filled: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


FENCED = {"default.client.supplier": "org.kafkarescale.FencedAfterAbort"}

CASES = {
    "comes and goes": Case(stays=True),
    "comes and goes, without its state": Case(stays=True, keeps_state=False),
    "comes and goes, filled windows": Case(stays=True, filled=True),
    "comes and goes, one thread": Case(stays=True, settings={"num.stream.threads": "1"}),
    "comes and goes, streams protocol": Case(stays=True, settings={"group.protocol": "streams"}),
    "comes and goes, at least once": Case(stays=True, settings={"processing.guarantee": "at_least_once"}),
    "comes and goes, fenced after an abort": Case(stays=True, settings=FENCED),
    "restarts apart": Case(apart=3),
    "restarts apart, without state": Case(apart=3, keeps_state=False),
    "restarts apart, without state, fenced after an abort": Case(apart=3, keeps_state=False, settings=FENCED),
    "restarts apart, without state, delay": Case(apart=2, delay_ms=3000, keeps_state=False),
    "restarts together, without state": Case(keeps_state=False),
    "restarts together, delay": Case(delay_ms=3000),
}


@dataclass(frozen=True)
class Losses:
    """What a run has shown. Numbers of records, unless said otherwise.

    :param starts: of instances.
    :param corrupted: tasks that stream threads have declared corrupted.
    :param fenced: how often a stream thread has begun again with all of its tasks.
    :param aborted: transactions of which the output has records that were aborted.
    :param lost: input records without a committed output record.
    :param traced: those of the lost records that are in the log of the output, in an aborted transaction.
    :param twice: committed output records beyond the first one of a key.
    """

    starts: int
    corrupted: int
    fenced: int
    aborted: int
    sent: int
    lost: int
    traced: int
    twice: int

    @classmethod
    def of(cls, application: LosingApplication, sent: int, log: OutputLog) -> Losses:
        """Count what has become of the records with the keys ``0`` to ``sent - 1``."""
        committed = {record.key for record in log.committed}
        lost = {str(number) for number in range(sent)} - committed
        return cls(
            starts=application.starts,
            corrupted=application.corrupted_tasks(),
            fenced=application.fenced_threads(),
            aborted=log.aborted_transactions,
            sent=sent,
            lost=len(lost),
            traced=len(lost & {record.key for record in log.aborted}),
            twice=len(log.committed) - len(committed),
        )


def run(case: Case, directory: Path, rounds: int, kept: Path | None = None) -> Losses:
    """Run a case with a new broker.

    :param rounds: how often an instance comes and goes, or both are restarted.
    :param kept: where the directory is copied to while the broker runs, if records were lost.
    """
    settings = {"num.stream.threads": "2", **case.settings}
    properties = {**SHORT_SESSION_OF_BROKER, "group.initial.rebalance.delay.ms": str(case.delay_ms)}
    with EmbeddedBroker(directory / "broker", heap="512m", properties=properties) as broker:
        application = LosingApplication(broker.bootstrap_servers, directory, settings, case.keeps_state)
        application.create_topics(PARTITIONS)
        if case.filled:
            application.fill_windows(PARTITIONS, 50_000)
        feed = Feed(broker.bootstrap_servers, PARTITIONS, RECORDS_PER_SECOND)
        with ended(application):
            with feed.running():
                (come_and_go if case.stays else restart)(application, case, rounds)
            application.drain()
            log = read_log(directory / "broker" / "data", OUTPUT)
            losses = Losses.of(application, feed.sent, log)
            if losses.lost and kept is not None:
                shutil.copytree(directory, kept)
    return losses


def come_and_go(application: LosingApplication, case: Case, rounds: int) -> None:
    """Let instance 2 come and go beside instance 1, which runs in the end."""
    application.start(1)
    application.await_running()
    for _ in range(rounds):
        application.start(2)
        application.await_running()
        time.sleep(UP_SECONDS)
        application.stop(2)
        time.sleep(DOWN_SECONDS)


def restart(application: LosingApplication, case: Case, rounds: int) -> None:
    """Start both instances, and stop them again; after the last start, both run."""
    for number in range(rounds):
        if number:
            application.stop_all()
        application.start(1)
        time.sleep(case.apart)
        application.start(2)
        application.await_running()
        time.sleep(UP_SECONDS)


@contextmanager
def ended(application: LosingApplication) -> Iterator[None]:
    """End the instances with the block, however it ends."""
    try:
        yield
    finally:
        application.kill_all()


def main() -> int:
    """Run the chosen cases, and print a row of Markdown for each. Return 1 if records were lost, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="may be repeated; by default all")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--keep", type=Path, help="a new directory for the first run that loses records")
    options = parser.parse_args()
    names = [each.name for each in fields(Losses)]
    print(f"| case | {' | '.join(names)} | load |")
    print(f"|---|{'--:|' * (len(names) + 1)}", flush=True)
    lost = 0
    for name in options.case or CASES:
        with tempfile.TemporaryDirectory(prefix="kafka-rescale-losses-") as scratch:
            kept = options.keep / "run" if options.keep and not lost else None
            losses = run(CASES[name], Path(scratch), options.rounds, kept)
        lost += losses.lost
        figures = (*astuple(losses), round(os.getloadavg()[0]))
        print(f"| {name} | {' | '.join(map(str, figures))} |", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
