"""Copy throughput of one topic, in alternating order: this copy, a plain loop, and Kafka Streams' own restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from benchmarks import streams_restore
from benchmarks.contestants import Timing, copy_worker, plain_loop, plan_of, restore_job
from benchmarks.copied_topic import RECORD_BYTES, STORE, Fingerprint, fill, fingerprint
from benchmarks.sizes import AFTER, BEFORE, Sizes
from testbed.broker import EmbeddedBroker
from testbed.topics import create_inputs, create_outputs

APPLICATION = "restored"
SOURCE = f"{APPLICATION}-{STORE}-changelog"
OURS, JOB, PLAIN, STREAMS = "copy_worker", "restore_job", "plain_loop", "streams_restore"


def measure_copying(directory: Path, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Let every contestant copy the topic ``sizes.repeats`` times, and compare every copy with its source."""
    with EmbeddedBroker(directory / "broker") as broker:
        contest = Contest(KafkaConnection(broker.client_config()), directory, sizes)
        contest.prepare()
        tell(f"{sizes.records:,} records of {RECORD_BYTES} bytes written")
        for repeat in range(sizes.repeats):
            for name in contest.order(repeat):
                timing = contest.run(name, repeat)
                pace = sizes.records / timing.copying
                tell(f"{name}: {timing.copying:.2f} s = {pace:,.0f} records/s, {timing.around:.1f} s around it")
        return contest.results()


class Contest:
    """One topic and what was measured on it."""

    def __init__(self, connection: KafkaConnection, directory: Path, sizes: Sizes) -> None:
        self._connection, self._directory, self._sizes = connection, directory, sizes
        self._admin = ClusterAdmin(connection)
        self._expected = Fingerprint(0, 0)
        self._timings: dict[str, list[Timing]] = {name: [] for name in (OURS, PLAIN, STREAMS, JOB)}

    def prepare(self) -> None:
        """Let the application create its topics once, outside every measurement, and fill its changelog."""
        client = dict(self._connection.config)
        create_inputs(client, BEFORE)
        create_outputs(client, BEFORE)
        streams_restore.restore(self._connection, APPLICATION, self._directory / APPLICATION, 0)
        fill(self._connection, SOURCE, self._sizes.records)
        self._expected = fingerprint(self._connection, SOURCE, BEFORE)
        assert self._expected.records == self._sizes.records

    def order(self, repeat: int) -> list[str]:
        """Return the contestants. Each time, another one is first."""
        names = list(self._timings)
        return names[repeat % len(names) :] + names[: repeat % len(names)]

    def run(self, name: str, repeat: int) -> Timing:
        """Measure one run."""
        timing = self._restored() if name == STREAMS else self._copied(name, f"{name.replace('_', '-')}-{repeat}")
        self._timings[name].append(timing)
        return timing

    def results(self) -> dict[str, Any]:
        """Return the seconds of every run, and medians as records and megabytes per second."""
        found: dict[str, Any] = {"records": self._sizes.records, "record_bytes": RECORD_BYTES, "contestants": {}}
        for name, timings in self._timings.items():
            paces = [self._sizes.records / timing.copying for timing in timings]
            found["contestants"][name] = {
                "seconds": [round(timing.copying, 3) for timing in timings],
                "around": [round(timing.around, 3) for timing in timings],
                "records_per_second": {"median": median(paces), "least": min(paces), "most": max(paces)},
                "megabytes_per_second": median(paces) * RECORD_BYTES / 1e6,
            }
        return found

    def _restored(self) -> Timing:
        directory = self._directory / APPLICATION
        return streams_restore.restore(self._connection, APPLICATION, directory, self._sizes.records)

    def _copied(self, name: str, application: str) -> Timing:
        plan = plan_of(SOURCE, application)
        target = plan.moves[0].target
        self._admin.ensure_topic(target, AFTER, 1, {"cleanup.policy": "compact"})
        if name == PLAIN:
            timing = plain_loop(self._connection, SOURCE, target)
        elif name == OURS:
            timing = copy_worker(self._connection, plan)
        else:
            timing = restore_job(self._connection, plan, self._directory)
        found = fingerprint(self._connection, target, AFTER)
        assert found == self._expected, f"{name} copied {found}, expected {self._expected}"
        self._admin.delete_topics([target])
        return timing
