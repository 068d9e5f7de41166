"""Tries to take a lease as soon as a line arrives on stdin, and prints the outcome as JSON.

It runs as a process of its own.
"""

from __future__ import annotations

import sys

from kafka_rescale.core.errors import RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import acquire


def main(application: str, owner: str) -> None:
    """Take the lease of ``application`` for ``owner``."""
    control = ControlTopic(KafkaConnection.from_environment(), application)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        acquire(control, owner, 8, now_ms=1_000, ttl_ms=60_000, owner_is_finished=lambda _: False)
        print("granted")
    except RescaleError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
