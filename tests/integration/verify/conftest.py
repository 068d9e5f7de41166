"""Fixtures for tests beside a busy log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from tests.support.verify.busy_blue import EAGER_BROKER


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """A connection to a broker whose log cleaner works all the time."""
    directory = tmp_path_factory.mktemp("eager")
    with EmbeddedBroker(directory, heap="512m", properties=EAGER_BROKER) as running:
        yield KafkaConnection(running.client_config())
