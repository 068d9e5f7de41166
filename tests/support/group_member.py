"""A consumer in a process of its own, so that a test can kill it. It prints ``assigned`` once it is a member."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer


@contextmanager
def group_member(settings: Mapping[str, str], group: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is a member of ``group`` and has an assignment when the block begins.

    It is killed at the end of the block.
    """
    config = json.dumps({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    process = subprocess.Popen([sys.executable, __file__, config, topic], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "assigned"
        yield process
    finally:
        process.kill()
        process.wait()


def main(config: str, topic: str) -> None:
    """Subscribe and poll until killed."""
    consumer = Consumer(json.loads(config))
    consumer.subscribe([topic], on_assign=lambda *_: print("assigned", flush=True))
    while True:
        consumer.poll(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
