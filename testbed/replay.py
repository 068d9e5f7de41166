"""Sends the year of flights to Kafka: as many as wanted at once, and the rest at a steady rate.

After SIGUSR1, the replay sends the rest at full speed. After SIGTERM, it flushes, notes in the progress file how
many flights have been sent, and ends. The same command with the same progress file goes on from there.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from confluent_kafka import KafkaException, Producer

from testbed.flights import Dataset, load
from testbed.progress import Progress, ProgressReport
from testbed.topics import FLIGHTS, PLANES, create_inputs, create_outputs

REFRESH_SECONDS = 3
TICK_SECONDS = 0.02


class Replay:
    """Sends flights in order. Flight i goes to partition i modulo the present partition count.

    :param client: librdkafka properties with ``bootstrap.servers``
    :param pinned: whether to use only the partitions that exist at the beginning, even if others are added
    """

    def __init__(
        self, client: Mapping[str, object], dataset: Dataset, start: int = 0, *, pinned: bool = False
    ) -> None:
        self.sent = start
        self._pinned = pinned
        self.stopping = False
        self.full_speed = False
        self._dataset = dataset
        reliable = {"enable.idempotence": True, "partitioner": "murmur2_random"}
        fast = {"linger.ms": 20, "queue.buffering.max.messages": 200_000}
        self._producer = Producer({**client, **reliable, **fast, "topic.metadata.refresh.interval.ms": 2000})
        self._errors: list[Any] = []
        self._partitions = 0
        self._refreshed = float("-inf")

    def send_planes(self) -> None:
        """Send all planes, and return when they have arrived."""
        for timestamp, key, value in self._dataset.plane_records:
            self._produce(PLANES, value, timestamp=timestamp, key=key)
        self.flush()

    def send_at_once(self, until: int) -> None:
        """Send the flights before flight ``until`` as fast as possible. Afterwards, ``sent`` is exact."""
        records = self._dataset.flight_records
        until = min(until, len(records))
        while self.sent < until and not self.stopping:
            self._refresh_partitions()
            for index in range(self.sent, min(until, self.sent + 1000)):
                timestamp, value = records[index]
                self._produce(FLIGHTS, value, timestamp=timestamp, partition=index % self._partitions)
                self.sent = index + 1

    def send_at_rate(self, rate: float, report: Callable[[int], None], *, lasting: bool = False) -> None:
        """Send the rest.

        :param rate: flights per second
        :param report: called after every tick, with the number of flights sent
        :param lasting: whether to go on until SIGUSR1 asks for the rest, however long that takes
        """
        total, begin, first = len(self._dataset.flight_records), time.monotonic(), self.sent
        while self.sent < total and not self.stopping:
            due = first + due_of(total - first, rate, time.monotonic() - begin, lasting=lasting)
            self.send_at_once(total if self.full_speed else due)
            self._producer.poll(TICK_SECONDS)  # serves deliveries, and is the pace of the loop
            self._raise_errors()
            report(self.sent)

    def flush(self) -> None:
        """Return when all sent records have been acknowledged. Raise KafkaException if a record can't be."""
        self._producer.flush()
        self._raise_errors()

    def _produce(self, topic: str, value: str, **options: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, value, on_delivery=self._delivered, **options)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _delivered(self, error: Any, message: object) -> None:
        if error is not None:
            self._errors.append(error)

    def _raise_errors(self) -> None:
        if self._errors:
            raise KafkaException(self._errors[0])

    def _refresh_partitions(self) -> None:
        """Follow a topic that grows. While no broker answers, use the last known count."""
        if self._pinned and self._partitions:
            return
        if time.monotonic() - self._refreshed > REFRESH_SECONDS:
            self._refreshed = time.monotonic()
            try:
                description = self._producer.list_topics(
                    FLIGHTS, timeout=60 if not self._partitions else 5
                ).topics[FLIGHTS]
                if description.error is not None:
                    raise KafkaException(description.error)
            except KafkaException:
                if not self._partitions:
                    raise
                return
            self._partitions = len(description.partitions)


def due_of(flights: int, rate: float, seconds: float, *, lasting: bool) -> int:
    """Return how many of the flights are due after so many seconds.

    :param rate: flights per second; for a replay that lasts, the rate at its beginning.
    :param lasting: whether the replay slows down as fewer flights are left, and keeps the last flight.
    """
    if not lasting:
        return int(seconds * rate)
    return flights - max(1, math.ceil(flights * math.exp(-rate * seconds / flights))) if flights else 0


def run(options: argparse.Namespace) -> Progress:
    """Replay as the command line says, and return the final progress, which is also in the progress file."""
    client = {"bootstrap.servers": options.bootstrap_servers, **dict(options.property)}
    before = Progress.read(options.progress_file)
    if before is not None and before.state == "running":
        raise SystemExit(f"{options.progress_file}: an earlier replay was killed; what it sent is unknown")
    limit, shift_hours = (before.limit, before.shift_hours) if before else (options.limit, None)
    dataset = load(limit, shift_hours)
    replay = Replay(client, dataset, start=before.sent if before else 0, pinned=options.pinned)
    report = ProgressReport(options.progress_file, limit, dataset)
    _handle_signals(replay)
    if options.partitions:
        create_inputs(client, options.partitions)
        create_outputs(client, options.partitions)
    report.write("running", replay.sent)
    if replay.sent == 0:
        replay.send_planes()
    replay.send_at_once(options.preload)
    replay.send_at_rate(options.rate, report, lasting=options.lasting)
    replay.flush()
    return report.write("stopped" if replay.sent < len(dataset.flights) else "finished", replay.sent)


def _handle_signals(replay: Replay) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        replay.stopping = True

    def hurry(number: int, frame: FrameType | None) -> None:
        replay.full_speed = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGUSR1, hurry)


def _property(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. It exits with 0 when all flights are sent, or when it was asked to end."""
    parser = argparse.ArgumentParser(prog="python -m testbed.replay", description=__doc__)
    default = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    parser.add_argument("--bootstrap-servers", default=default)
    parser.add_argument("--property", type=_property, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--partitions", type=int, help="create missing topics with this number of partitions")
    parser.add_argument("--preload", type=int, default=0, help="flights sent at once")
    parser.add_argument("--rate", type=float, default=200, help="flights per second after that")
    parser.add_argument("--lasting", action="store_true", help="slow down, and keep the last flights for SIGUSR1")
    parser.add_argument("--pinned", action="store_true", help="never use partitions that are added meanwhile")
    parser.add_argument("--limit", type=int, help="only the first so many flights of the year")
    parser.add_argument("--progress-file", type=Path, default=Path("flights-progress.json"))
    run(parser.parse_args(arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
