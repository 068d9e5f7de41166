"""The jobs of a pipeline without Spark: the same code as with ``spark-submit``, but its tasks run one by one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.request import ProcessRequest, WarmUpRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing.prepare import prepare
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.jobs.run import run
from kafka_rescale.spark.processing.job import process

from tests.support.processing.killed import started

Body = Callable[[Job], None]
Request = ProcessRequest | WarmUpRequest


@dataclass(frozen=True)
class Rdd:
    """The part of an RDD that the job uses."""

    items: Sequence[Any]

    def mapPartitions(self, action: Callable[[Iterable[Any]], Iterator[Any]]) -> Rdd:  # noqa: N802
        return Rdd([result for item in self.items for result in action([item])])

    def collect(self) -> list[Any]:
        return list(self.items)

    def count(self) -> int:
        return len(self.items)


def context_of(parallelize: Callable[[Sequence[Any], int], Rdd]) -> Any:
    """Return a stand-in for a Spark context. It does not report the progress of its tasks."""
    tracker = SimpleNamespace(getJobIdsForGroup=lambda: [])
    return SimpleNamespace(parallelize=parallelize, defaultParallelism=1, statusTracker=lambda: tracker)


def session(_: Job) -> Any:
    """Return a stand-in for the Spark session of a job."""
    return SimpleNamespace(sparkContext=context_of(lambda items, count: Rdd(items)))


def run_job(
    connection: KafkaConnection,
    application_id: str,
    run_id: str,
    attempt: int,
    request: Request,
    body: Body = process,
) -> int:
    """Make one attempt at a job in this process, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "spark", session)
        patch.setenv("KAFKA_RESCALE_KAFKA_CONFIG", json.dumps(dict(connection.config)))
        named = ["--application", application_id, "--run", run_id, "--attempt", str(attempt)]
        arguments = [*named, "--request", request.model_dump_json()]
        return run(body.__name__, body, "request", arguments=arguments)


def started_job(
    connection: KafkaConnection,
    application_id: str,
    run_id: str,
    attempt: int,
    request: Request,
    body: Body = process,
) -> Any:
    """Start one attempt at a job in a process of its own, and return the process."""
    return started(_exit_with, connection, application_id, run_id, attempt, request, body)


def requests(application: PipelineApplication, threads: Iterable[str], level: int) -> list[ProcessRequest]:
    """The requests to the threads of one level."""
    return [ProcessRequest.of(application, thread, level) for thread in threads]


def run_all(
    application: PipelineApplication, connection: KafkaConnection, run_id: str, backfill: Backfill | None = None
) -> list[JobResult]:
    """Make a whole run as the DAG does, but in this process. Return the results of its jobs.

    :param application: the application with the id of its generation.
    """
    processing, results = prepare(application, connection, run_id, backfill=backfill).processing, []
    for level in range(1, len(levels(pipeline_named(application.pipeline).topology)) + 1):
        for thread in processing.running:
            asked = ProcessRequest.of(application, thread, level, backfill=backfill)
            code = run_job(connection, application.application_id, run_id, 1, asked)
            results.append(ControlTopic(connection, application.application_id).read().results[asked.key])
            assert code == 0, results[-1]
    return results


def _exit_with(*arguments: Any) -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.exit(run_job(*arguments))
