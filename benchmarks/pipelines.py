"""What a run of a pipeline costs beside Structured Streaming: without input, with 100,000 records, a million keys.

``python -m benchmarks.pipelines [--keys 1000000] [--records 100000] [--repeats 3] [--out docs/benchmarks]``. Both
read the same topic on one broker, in turns. Each run is a ``spark-submit`` of its own on ``local[2]``. At the end,
the counts of all keys are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.processing.prepare import is_idle, prepare
from kafka_rescale.spark.jobs.package_zip import build

from benchmarks.counting_pipeline import INPUT, OUTPUT
from benchmarks.machine import machine
from benchmarks.pipelines_page import OURS, THEIRS, draw, page
from benchmarks.structured_counting import OUTPUT as STRUCTURED_OUTPUT
from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, SUBMIT
from testbed.jars import ensure_jars

PARTITIONS, SEED, T0 = 2, 7, 1_700_000_000_000
RUN_SECONDS = 1_800
TASK_SECONDS = re.compile(r"TaskDone\(.*\bseconds=([\d.]+)")
"""What the job prints about every task."""


@dataclass
class Contest:
    """One topic, and the runs of both contestants over its records.

    :param rows: a dictionary per run.
    """

    connection: KafkaConnection
    directory: Path
    keys: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    _written: int = 0

    def prepare(self) -> None:
        """Create the topics without retention, because their records are of 2023 and would expire at once."""
        for topic in (INPUT, OUTPUT, STRUCTURED_OUTPUT):
            ClusterAdmin(self.connection).ensure_topic(topic, PARTITIONS, 1, {"retention.ms": "-1"})

    def write(self, keys: Sequence[int]) -> None:
        """Write a record for each key."""
        producer = Producer(self.connection.client(**{"partitioner": "murmur2_random", "linger.ms": 20}))
        for key in keys:
            self._written += 1
            producer.produce(INPUT, b"x" * 20, b"key-%09d" % key, timestamp=T0 + self._written)
            if self._written % 10_000 == 0:
                producer.flush(60)
        assert producer.flush(60) == 0

    def measure(self, what: str, number: int) -> None:
        """Let both run once. Each time, the other one is first."""
        contestants = [(OURS, self._pipeline), (THEIRS, self._structured)]
        for name, run in contestants[number % 2 :] + contestants[: number % 2]:
            began = time.monotonic()
            job, batch = run(f"{what}-{number}")
            row = {
                "what": what,
                "who": name,
                "run": round(time.monotonic() - began, 2),
                "job": job,
                "batch": batch,
            }
            self.rows.append(row)
            print(json.dumps(row), flush=True)

    def differences(self) -> list[str]:
        """Return the keys for which the two have different counts."""
        ours, theirs = self._latest(OUTPUT, _from_long), self._latest(STRUCTURED_OUTPUT, int)
        return [str(key) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]

    def _pipeline(self, run: str) -> tuple[float, float]:
        application = PipelineApplication.model_validate(
            {
                "application_id": "batches",
                "runtime": "spark",
                "pipeline": "benchmarks.counting_pipeline:counting",
                "state.dir": str(self.directory / "state"),
            }
        )
        thread = prepare(application, self.connection, run).processing.running[0]
        request = ProcessRequest.of(application, thread, level=1)
        if is_idle(application, self.connection, run, request):
            return 0.0, 0.0
        zipped = ["--py-files", str(build(self.directory))]
        job = [str(ROOT / "spark_jobs" / "process.py"), "--application", "batches", "--run", run, "--attempt", "1"]
        said = self._submit([*zipped, *job, "--request", request.model_dump_json()])
        tasks = [float(seconds) for seconds in TASK_SECONDS.findall(said)]
        return ControlTopic(self.connection, "batches").read().results[request.key].seconds, max(tasks)

    def _structured(self, run: str) -> tuple[float, float]:
        jars = ",".join(str(jar) for jar in sorted(ensure_jars("connector").glob("*.jar")))
        job = str(ROOT / "benchmarks" / "structured_counting.py")
        checkpoint = str(self.directory / "checkpoint")
        said = self._submit(["--jars", jars, job, self.connection.servers, checkpoint])
        job, batch = next(line.split()[1:] for line in said.splitlines() if line.startswith("seconds "))
        return float(job), float(batch)

    def _submit(self, arguments: list[str]) -> str:
        command = [str(SUBMIT), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KAFKA_RESCALE_KAFKA_CONFIG": json.dumps(dict(self.connection.config)),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        done = subprocess.run(
            [*command, "--driver-memory", "1g", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def _latest(self, topic: str, decode: Any) -> dict[bytes, int]:
        ends = ClusterAdmin(self.connection).end_offsets([topic])[topic]
        ranges = {partition: (0, end) for partition, end in ends.items()}
        return {m.key(): decode(m.value()) for m in read_ranges(self.connection, topic, ranges)}


def _from_long(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def measure(directory: Path, keys: int, records: int, repeats: int) -> dict[str, Any]:
    """Measure everything. The first run of each kind of state fills it."""
    chance, before = random.Random(SEED), machine()
    with EmbeddedBroker(directory / "broker") as broker:
        contest = Contest(KafkaConnection(broker.client_config()), directory, keys)
        contest.prepare()
        contest.write(range(records))
        contest.measure(f"{records:,} records, no state yet", 0)
        for number in range(repeats):
            contest.measure("nothing new", number)
        contest.write(range(keys))
        contest.measure(f"{keys:,} new keys", 0)
        for number in range(repeats):
            contest.write([chance.randrange(keys) for _ in range(records)])
            contest.measure(f"{records:,} records, {keys:,} keys", number)
            contest.measure(f"nothing new, {keys:,} keys", number)
        return {"machine": before, "rows": contest.rows, "differences": contest.differences()}


def main(arguments: list[str] | None = None) -> int:
    """The command line. It returns 1 if the two have different counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelines", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "benchmarks-pipelines")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks", help="where the results go")
    options, began = parser.parse_args(arguments), time.monotonic()
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    found = measure(options.directory.resolve(), options.keys, options.records, options.repeats)
    found |= {"measured": datetime.now(UTC).date().isoformat()}
    found |= {"took_minutes": round((time.monotonic() - began) / 60, 1)}
    print(f"{len(found['differences'])} keys differ")
    if found["differences"]:
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "pipelines.json").write_text(json.dumps(found, indent=2) + "\n")
    (options.out / "pipelines.md").write_text(page(found))
    draw(found, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
