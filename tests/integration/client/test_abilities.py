"""What real brokers say about the requests that they support, and about the features in use."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.preflight.requests import ALWAYS, GROWS, STREAMS_PROTOCOL, TRANSACTION_VERSION
from kafka_rescale.kafka.admin.abilities import read_abilities
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker

pytestmark = pytest.mark.integration


def test_the_broker_knows_all_that_an_expansion_needs(broker: EmbeddedBroker) -> None:
    found = read_abilities(KafkaConnection(broker.client_config()))
    (known,) = found.requests.values()
    assert known >= {*ALWAYS, *GROWS, *STREAMS_PROTOCOL}
    assert found.features[TRANSACTION_VERSION] == 2


@pytest.mark.slow
def test_a_broker_of_an_earlier_version_lacks_the_streams_protocol(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m", version="3.9.2") as earlier:
        found = read_abilities(KafkaConnection(earlier.client_config()))
    (known,) = found.requests.values()
    assert known >= {*ALWAYS, *GROWS}
    assert not known & set(STREAMS_PROTOCOL)
    assert found.features.get(TRANSACTION_VERSION, 0) < 2
