"""Two processes beside an application: one sends records at a steady rate, the other reads how late results are.

`python -m benchmarks.steady_load send SERVERS TOPIC KEYS RATE`
`python -m benchmarks.steady_load read SERVERS TOPIC FILE`
Both end with SIGTERM.
"""

from __future__ import annotations

import json
import random
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from confluent_kafka import Consumer, Producer, TopicPartition

LOAD = {"partitioner": "murmur2_random", "queue.buffering.max.messages": 500_000}
TICK_SECONDS = 0.01
SAMPLES_PER_SECOND = 500
"""How many latencies are kept of each second. The reader must not take a core of its own."""

stopped = threading.Event()


def main(command: str, servers: str, topic: str, *rest: str) -> None:
    """Run one command until SIGTERM."""
    signal.signal(signal.SIGTERM, _stop)
    if command == "send":
        keys, rate = rest
        send(servers, topic, int(keys), float(rate))
    else:
        read(servers, topic, Path(rest[0]))


def key_of(number: int) -> bytes:
    """Return the key of a number."""
    return b"key%012d" % number


def send(servers: str, topic: str, keys: int, rate: float) -> None:
    """Send records of random keys, at a rate per second."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **LOAD})
    value, began, sent = struct.pack(">q", 1), time.monotonic(), 0
    while not stopped.is_set():
        due = int((time.monotonic() - began) * rate)
        for _ in range(due - sent):
            producer.produce(topic, value, key_of(random.randrange(keys)))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(TICK_SECONDS)
    producer.flush()


def read(servers: str, topic: str, file: Path) -> None:
    """Write a line per second: the time, and latencies in ms of the records that could be read then.

    A result has the timestamp of its input record. The sender has set it by this machine's clock. One partition is
    read, because the others have the same load.
    """
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "latency", "fetch.wait.max.ms": 10})
    (end,) = consumer.offsets_for_times([TopicPartition(topic, 0, -1)], timeout=30)
    consumer.assign([TopicPartition(topic, 0, end.offset)])
    second, latencies = int(time.time()), list[int]()
    with file.open("a") as lines:
        while not stopped.is_set():
            messages = consumer.consume(1000, 0.02)
            now = time.time()
            if int(now) != second:
                kept = random.sample(latencies, min(len(latencies), SAMPLES_PER_SECOND))
                lines.write(json.dumps([second, kept]) + "\n")
                lines.flush()
                second, latencies = int(now), []
            now_ms = round(now * 1000)
            latencies += [now_ms - message.timestamp()[1] for message in messages if not message.error()]


def _stop(_: int, __: FrameType | None) -> None:
    stopped.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
