"""A program that filters and keeps no state.

Its Python lifecycle runs a consumer per generation in this process.
"""

from __future__ import annotations

import json
import os
from threading import Event, Thread
from typing import ClassVar

from confluent_kafka import Consumer, Producer
from kafka_rescale.lifecycle.instance import Instance

VARIABLE = "TESTS_FILTERING"
"""JSON with the settings of its clients, its ``input`` and its ``output``."""


class Filtering:
    """Passes on every record that has a value."""

    running: ClassVar[dict[str, tuple[Event, Thread]]] = {}

    def start(self, instance: Instance) -> None:
        """Start it unless it runs."""
        if not self.is_running(instance):
            stop = Event()
            thread = Thread(target=_filter, args=(instance.application_id, stop), daemon=True)
            self.running[instance.application_id] = stop, thread
            thread.start()

    def stop(self, instance: Instance) -> None:
        """Stop it cleanly if it runs."""
        if self.is_running(instance):
            stop, thread = self.running.pop(instance.application_id)
            stop.set()
            thread.join()

    def is_running(self, instance: Instance) -> bool:
        """Return whether it has been started."""
        return instance.application_id in self.running


def _filter(group: str, stop: Event) -> None:
    given = json.loads(os.environ[VARIABLE])
    own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer, producer = Consumer({**given["client"], **own}), Producer(given["client"])
    consumer.subscribe([given["input"]])
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            if message.value() is not None:
                producer.produce(given["output"], message.value(), message.key())
            producer.flush()
            consumer.commit(message, asynchronous=False)
    consumer.close()
