"""The latency of an application at 70 % of its capacity: alone, beside a copy, or beside a limited copy.

Run `python -m benchmarks.latency`. Broker, application, load and Spark share one machine. Spark's processes have
the lowest priority, so that they compete for the broker as in production, and not for the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.application.streams import Application
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.expansion.stages import expand_stage
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks.charts import save
from benchmarks.machine import machine
from benchmarks.steady_load import LOAD, key_of
from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.jars import JVM_DIRECTORY, ensure_jars, java_command
from testbed.processes import end_process, wait_until

NAME, INPUT, OUTPUT = "steady", "steady-input", "steady-output"
COPY = f"{NAME}-g2-values-changelog"
BEFORE, AFTER, STAGE = 4, 8, 1
SHARE = 0.7
LOWEST = 19
SETTLE_SECONDS = 20
JVM = ("-Xshare:auto", "-XX:+UseSerialGC", "-Xmx768m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
console = Console(highlight=False)


@dataclass
class World:
    """The running application after it has built up its state.

    :param capacity: records per second that it processes at full load, beside the process that sends them.
    """

    directory: Path
    servers: str
    processes: ExitStack
    capacity: float = 0.0
    windows: dict[str, tuple[float, float]] = field(default_factory=dict)
    lags: list[tuple[float, int]] = field(default_factory=list)
    copied: list[tuple[float, int]] = field(default_factory=list)

    @cached_property
    def admin(self) -> ClusterAdmin:
        """For questions to the broker."""
        return ClusterAdmin(KafkaConnection({"bootstrap.servers": self.servers}))

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a process. It ends with this world."""
        with (self.directory / "processes.log").open("ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT)
        self.processes.callback(end_process, process.pid)
        return process

    def watch(self, name: str, seconds: float, until: subprocess.Popen[bytes] | None = None) -> None:
        """Let time pass under a name, and record the lag of the input meanwhile.

        :param until: the copy. The stretch ends when it ends.
        """
        began = time.time()
        while time.time() - began < seconds and (until is None or until.poll() is None):
            self.lags.append((time.time(), self.lag()))
            if until is not None:
                self.copied.append((time.time(), self.written()))
            time.sleep(1)
        self.windows[name] = began, time.time()

    def lag(self) -> int:
        """Return how many records of the input the application has not committed."""
        ends, done = self.admin.end_offsets([INPUT])[INPUT], self.admin.committed(NAME).get(INPUT, {})
        return sum(end - done.get(p, 0) for p, end in ends.items())

    def send(self, keys: range) -> float:
        """Send a record of each key, and return the seconds until the application has processed them."""
        began = time.monotonic()
        producer = Producer({"bootstrap.servers": self.servers, **LOAD})
        for number in keys:
            producer.produce(INPUT, struct.pack(">q", 1), key_of(number))
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush()
        wait_until(lambda: self.lag() == 0, timeout=600, what="the application to process what was sent")
        return time.monotonic() - began

    def processed_beside(self, keys: int, rate: float) -> float:
        """Send records at a rate, and return how many of them the application processes per second.

        :param rate: more than the application can process. If it can process them, this rate is returned.
        """
        sender = self.sender(keys, rate)
        time.sleep(SETTLE_SECONDS)
        began, before = time.monotonic(), self.processed()
        time.sleep(SETTLE_SECONDS)
        found = (self.processed() - before) / (time.monotonic() - began)
        end_process(sender.pid)
        wait_until(lambda: self.lag() == 0, timeout=600, what="the application to process what was sent")
        return found

    def sender(self, keys: int, rate: float) -> subprocess.Popen[bytes]:
        """Start the process that sends records at a rate per second."""
        return self.run(
            sys.executable, "-m", "benchmarks.steady_load", "send", self.servers, INPUT, str(keys), str(rate)
        )

    def written(self) -> int:
        """Return how many records the copy has written."""
        return sum(self.admin.end_offsets([COPY], if_present=True).get(COPY, {}).values())

    def processed(self) -> int:
        """Return how many records the application has committed."""
        return sum(self.admin.committed(NAME).get(INPUT, {}).values())


@contextmanager
def world(directory: Path, keys: int) -> Iterator[World]:
    """A broker, the application, and its state."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with EmbeddedBroker(directory / "broker") as broker, ExitStack() as processes:
        found = World(directory, broker.bootstrap_servers, processes)
        for topic in (INPUT, OUTPUT):
            found.admin.ensure_topic(topic, BEFORE, 1, {})
        program = str(JVM_DIRECTORY / "tests" / "LinkApplication.java")
        words = (NAME, found.servers, INPUT, OUTPUT, str(directory / "state"), "sum")
        found.run(*java_command(program, *words, options=JVM))
        most = keys / found.send(range(keys))
        found.capacity = found.processed_beside(keys, most)
        yield found


def measure(directory: Path, keys: int, seconds: float, limit: int | None) -> dict[str, Any]:
    """Return latencies and lags, alone and beside a copy.

    :param limit: bytes per second that the copy may write, or None for no limit.
    """
    with world(directory, keys) as found:
        rate, late = found.capacity * SHARE, directory / "latencies.jsonl"
        found.sender(keys, rate)
        found.run(sys.executable, "-m", "benchmarks.steady_load", "read", found.servers, OUTPUT, str(late))
        found.watch("settling", SETTLE_SECONDS)
        found.watch("alone", seconds)
        expansion = Expansion(directory, application(limit), KafkaConnection({"bootstrap.servers": found.servers}))
        expansion.begin()
        expand_stage(expansion.application, expansion.connection, owner=expansion.owner, stage=STAGE)
        job = expansion.submit("restore", STAGE)
        os.setpriority(os.PRIO_PROCESS, job.pid, LOWEST)
        wait_until(found.written, timeout=300, what="the copy to begin")
        before = found.written()
        found.watch("copying", seconds, job)
        began, ended = found.windows["copying"]
        copied = (found.written() - before) / (ended - began)
        end_process(job.pid)
        return {
            "limit": limit,
            "capacity": round(found.capacity),
            "rate": round(rate),
            "copied_per_second": round(copied),
            **{name: _figures(found, late, name) for name in ("alone", "copying")},
        }


def application(limit: int | None) -> Application:
    """Return the application that is expanded."""
    return Application.model_validate(
        {
            "application_id": NAME,
            "partitions": AFTER,
            "inputs": [{"topic": INPUT, "policy": "paused"}],
            "outputs": [{"topic": OUTPUT}],
            "subtopologies": [{"sources": [INPUT], "stores": ["values"], "sinks": [OUTPUT]}],
            "stores": [{"name": "values", "type": "timestamped-key-value"}],
            "lifecycle": {"type": "manual"},
            **({"pacing": {"bytes_per_second": limit}} if limit else {}),
        }
    )


def _figures(found: World, file: Path, name: str) -> dict[str, Any]:
    began, ended = found.windows[name]
    seconds = [(at, kept) for at, kept in map(json.loads, file.read_text().splitlines()) if began <= at < ended]
    percentiles = quantiles([ms for _, kept in seconds for ms in kept], n=100)
    copied = [count for at, count in found.copied if began <= at < ended]
    return {
        "copied_by_second": [later - earlier for earlier, later in pairwise(copied)],
        "p50_ms": percentiles[49],
        "p99_ms": percentiles[98],
        "lag": [lag for at, lag in found.lags if began <= at < ended],
        "p99_by_second": [quantiles(kept, n=100)[98] for _, kept in seconds if len(kept) > 1],
    }


def picture(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the 99th percentile of each second, first alone and then beside the copy. Each pace has a panel."""
    figure = Figure(figsize=(9, 3 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), 1, sharey=True, squeeze=False)[:, 0]
    for axes, row in zip(panels, rows, strict=True):
        alone, copying = row["alone"]["p99_by_second"], row["copying"]["p99_by_second"]
        axes.plot(range(len(alone)), alone, color="tab:green", label="application alone")
        beside = range(len(alone), len(alone) + len(copying))
        axes.plot(beside, copying, color="tab:red", label=f"beside a copy, {row['copied_per_second']:,} records/s")
        axes.set_title(f"limit {row['limit']:,} bytes/s" if row["limit"] else "no limit")
        axes.set_ylabel("latency, p99 of a second (ms)")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    panels[-1].set_xlabel("seconds; Spark's own start is left out between the two")
    return figure


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--keys", type=int, default=3_000_000, help="entries of the state")
    parser.add_argument("--seconds", type=float, default=60, help="of each stretch")
    parser.add_argument(
        "--limits", type=int, nargs="+", default=[500_000, 100_000], help="bytes per second of limited copies"
    )
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "latency", help="scratch, emptied first")
    parser.add_argument("--out", type=Path, help="a directory for latency.json and latency.svg")
    options = parser.parse_args(arguments)
    ensure_jars("connector")
    before, rows = machine(), []
    for limit in (None, *options.limits):
        row = measure(options.directory.resolve() / str(limit), options.keys, options.seconds, limit)
        rows.append(row)
        alone, copying = row["alone"], row["copying"]
        console.print(
            f"limit {limit}: capacity {row['capacity']:,}/s, load {row['rate']:,}/s, "
            f"copy {row['copied_per_second']:,}/s; "
            f"p50 {alone['p50_ms']:.0f} → {copying['p50_ms']:.0f} ms, p99 {alone['p99_ms']:.0f} → "
            f"{copying['p99_ms']:.0f} ms ({copying['p99_ms'] / alone['p99_ms']:.2f} ×), "
            f"largest lag {max(alone['lag']):,} → {max(copying['lag']):,}"
        )
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "latency.json").write_text(json.dumps({"machine": before, "rows": rows}, indent=1) + "\n")
        save(picture(rows), options.out, "latency")
    return 0


if __name__ == "__main__":
    sys.exit(main())
