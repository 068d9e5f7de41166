"""What integration tests share: one real broker, and names that no other test uses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from kafka_rescale.embedded.broker import EmbeddedBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A running broker. Tests that stop or kill a broker start one of their own."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="768m") as running:
        yield running


@pytest.fixture(scope="session")
def client(broker: EmbeddedBroker) -> dict[str, str]:
    """librdkafka properties that connect to ``broker``."""
    return broker.client_config()


@pytest.fixture
def unique() -> str:
    """A short name of this test alone, for topics, groups and applications on the shared broker."""
    return f"t{uuid.uuid4().hex[:8]}"
