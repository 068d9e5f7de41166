"""On a real broker, this version takes over and finishes an expansion that another version has begun."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_store, lease
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.broker import EmbeddedBroker
from tests.support.house.names import flights_plan
from tests.support.house.upgrades import VERSIONS, records_of

pytestmark = pytest.mark.integration
OWNER = "expand_flights/the-next-run"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_of_this_version_goes_on_with_the_expansion_of_another(broker: EmbeddedBroker, version: str) -> None:
    connection = KafkaConnection(broker.client_config())
    control = ControlTopic(connection, "flights")
    control.ensure()
    written = {f"flights/{key}": value for key, value in records_of(version, "flights").items()}
    TransactionalWriter(connection, "kafka-rescale-flights").write(CONTROL_TOPIC, dict(written))

    found = control.read()
    assert found.lease is not None
    assert found.lease.owner != OWNER
    now_ms = found.lease.expires_at_ms + 1
    lease.acquire(control, OWNER, 8, now_ms=now_ms, ttl_ms=60_000, owner_is_finished=lambda _: True)
    journal = journal_store.begin(control, flights_plan(), OWNER, now_ms=now_ms)
    assert (journal.phase, journal.owner, journal.attempt) == (Phase.CAUGHT_UP, OWNER, 2)
    assert journal.captured == (found.journal and found.journal.captured)

    for phase in (Phase.PROMOTED, Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE):
        journal = journal_store.advance(control, phase, now_ms, holder=OWNER)
    after = control.read()
    assert after.journal == journal
    assert (after.results, after.acceptances, after.bridge) == (found.results, found.acceptances, found.bridge)
