"""An input that the application writes itself is drained together with the topics that it is filled from."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.quiesce import drain
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.small_application import application, declared, topic_configs, topology_text

pytestmark = pytest.mark.integration
ORDERS, BETWEEN, OWN = "{}-orders", "{}-by-customer-repartition", "{}-customers"
STOPPED = "sh -c 'exit 3' {application_id}"


def filling_itself(name: str, **changes: Any) -> Application:
    """An application that writes its own input: orders go through a repartition topic into the customers."""
    inputs = [{**each, "policy": "paused"} for each in declared(name)["inputs"]]
    text = topology_text(name).replace(f"(topic: {name}-totals)", f"(topic: {OWN.format(name)})")
    return application(name, topology=text, inputs=inputs, outputs=[], **changes)


def plan_of(made: Application, **counts: int) -> Plan:
    """The plan from 4 partitions to 8. ``counts`` are the topics that have other counts."""
    name = made.application_id
    current = {**dict.fromkeys(topic_configs(name), 4), **counts}
    return build_plan(made, topology_of(made), blue=name, generation=2, current=current, target=8)


def process_all(admin: ClusterAdmin, name: str, *topics: str) -> None:
    """Commit the ends as the application does."""
    admin.commit(name, admin.end_offsets(topic.format(name) for topic in topics))


@pytest.fixture
def connection(client: dict[str, str], unique: str) -> KafkaConnection:
    made = KafkaConnection(client)
    for topic in (ORDERS, BETWEEN, OWN):
        ClusterAdmin(made).ensure_topic(topic.format(unique), 4, 1, {})
    return made


def send(connection: KafkaConnection, topic: str) -> None:
    producer = Producer(connection.client())
    producer.produce(topic, b"v", b"customer-1", 1)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("ahead", [BETWEEN, ORDERS], ids=["a repartition topic", "an input"])
def test_what_is_on_its_way_to_an_own_input_is_waited_for(
    connection: KafkaConnection, unique: str, ahead: str
) -> None:
    """Otherwise the application would write it to its own input while it stops, by the count before the growth."""
    admin, made = ClusterAdmin(connection), filling_itself(unique)
    # The orders already have their partitions, so they do not grow. They still flow on.
    rescale, plan = Rescale.open(made, connection, "test"), plan_of(made, **{ORDERS.format(unique): 8})
    process_all(admin, unique, ORDERS, BETWEEN, OWN)
    drain(rescale, plan, seconds=30)
    send(connection, ahead.format(unique))
    process_all(admin, unique, *({ORDERS, BETWEEN, OWN} - {ahead}))
    with pytest.raises(Outage, match=f"{ahead.format(unique)}.* to be processed to their ends"):
        drain(rescale, plan, seconds=1)
    process_all(admin, unique, ahead)
    drain(rescale, plan, seconds=30)


def test_of_a_stopped_application_only_what_grows_has_to_be_empty(
    connection: KafkaConnection, unique: str
) -> None:
    """A stopped application moves nothing on.

    Records before its input are carried over, and processed with the new count.
    """
    admin = ClusterAdmin(connection)
    made = filling_itself(unique, lifecycle={**declared(unique)["lifecycle"], "status": STOPPED})
    send(connection, BETWEEN.format(unique))
    process_all(admin, unique, ORDERS, OWN)
    drain(Rescale.open(made, connection, "test"), plan_of(made), seconds=0)


def test_what_is_ahead_of_an_input_that_others_write_is_not_waited_for(
    connection: KafkaConnection, unique: str
) -> None:
    admin, made = ClusterAdmin(connection), application(unique)
    send(connection, BETWEEN.format(unique))
    process_all(admin, unique, OWN)
    drain(Rescale.open(made, connection, "test"), plan_of(made), seconds=30)
