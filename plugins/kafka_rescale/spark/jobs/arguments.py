"""The command line of the jobs that leave a result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rescale.core.job_requests import from_argument

ACCEPTABLE_LAG = 10_000
SILENT_SECONDS = 3_600


@dataclass(frozen=True)
class Arguments:
    """A job's command line.

    :param run: the run that holds the lease.
    :param attempt: number of this attempt at the run's task.
    :param acceptable_lag: offsets per partition (KIP-441's default).
    :param silent_seconds: how long the old topic must have got no records before its bridge ends.
    :param parallelism: most tasks at a time; 0 for as many as Spark has cores.
    :param snapshots: where a restore finds snapshots to begin with; empty for no snapshots.
    :param request: what a job for a snapshot or a pipeline is asked for, as JSON.
    """

    application: str
    run: str
    attempt: int
    stage: int | None = None
    acceptable_lag: int = ACCEPTABLE_LAG
    silent_seconds: int = SILENT_SECONDS
    parallelism: int = 0
    request: str = ""
    snapshots: str = ""


def parse(name: str, options: Sequence[str], arguments: Sequence[str] | None) -> Arguments:
    """Read a job's command line.

    :param options: the optional arguments that this job has.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--application", required=True, help="base name of the application")
    parser.add_argument("--run", required=True, help="the run that holds the lease")
    parser.add_argument("--attempt", type=int, required=True, help="attempt of the run's task")
    parser.add_argument("--parallelism", type=int, default=0, help="most tasks at a time; default: all cores")
    if "stage" in options:
        parser.add_argument("--stage", type=int, required=True, help="from 1 at the most downstream")
    if "acceptable_lag" in options:
        parser.add_argument("--acceptable-lag", type=int, default=ACCEPTABLE_LAG, help="offsets per partition")
    if "silent_seconds" in options:
        parser.add_argument("--silent-seconds", type=int, default=SILENT_SECONDS, help="of the old topic")
    if "snapshots" in options:
        parser.add_argument("--snapshots", default="", help="where there may be snapshots to begin with")
    if "request" in options:
        parser.add_argument(
            "--request", type=from_argument, required=True, help="what is asked for, as JSON, or packed"
        )
    return Arguments(**vars(parser.parse_args(arguments)))
