"""The page in a real browser, of an application with a thousand partitions on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from kafka_rescale.airflow.page_path import PREFIX
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lag_gate_record import GateRecord
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion.stages import lags
from kafka_rescale.web.kafka_source import KafkaSource

from testbed.broker import EmbeddedBroker
from tests.support.airflow.per_dag_auth import token_of
from tests.support.page.browser import chromium
from tests.support.page.page_server import COOKIE, SETTINGS, mounted, served

# In `make test`, test_page_in_chromium.py::test_a_thousand_partitions_are_shown_and_respond, without a broker
pytestmark = [pytest.mark.integration, pytest.mark.browser, pytest.mark.slow]

NAME, BEFORE, AFTER = "wide", 1_000, 2_000
RUN = f"expand_{NAME}/manual__1"
DECLARED = {
    "application_id": NAME,
    "partitions": AFTER,
    "inputs": [{"topic": "orders", "policy": "fixed"}],
    "repartitions": [{"name": "by-customer", "count": "start_command"}],
    "subtopologies": [
        {"sources": ["orders"], "sinks": ["by-customer-repartition"]},
        {"sources": ["by-customer-repartition"], "stores": ["totals"]},
    ],
    "stores": [{"name": "totals", "type": "timestamped-key-value"}],
    "lifecycle": {"type": "manual", "instructions": "the dashboard"},
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """A broker for this test, because a thousand partitions would slow down other tests."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="512m") as broker:
        yield KafkaConnection(broker.client_config())


@pytest.fixture(scope="module")
def applications(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("applications")
    (directory / f"{NAME}.yaml").write_text(yaml.safe_dump(DECLARED))
    return directory


def begun(connection: KafkaConnection, applications: Path) -> Plan:
    """Make the topics of both generations with some records, and begin an expansion that copies them."""
    admin = ClusterAdmin(connection)
    application = load_application(applications / f"{NAME}.yaml")
    changelog, repartition = f"{NAME}-totals-changelog", f"{NAME}-by-customer-repartition"
    current = {"orders": 4, changelog: BEFORE, repartition: BEFORE}
    plan = build_plan(
        application, topology_of(application), blue=NAME, generation=2, current=current, target=AFTER
    )
    made = {**current, **{move.target: AFTER for move in plan.moves}}
    for topic, partitions in made.items():
        admin.ensure_topic(topic, partitions, 1, {})
    producer = Producer(connection.client())
    for partition in range(BEFORE):
        producer.produce(changelog, b"v" * 12, b"key-%d" % partition, partition)
    assert producer.flush(60) == 0
    ControlTopic(connection, NAME).update(lambda _: {Concern.JOURNAL: Journal(plan=plan, owner=RUN)})
    return plan


def test_a_thousand_partitions_of_a_broker_are_shown_and_respond(
    connection: KafkaConnection, applications: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SETTINGS, "KAFKA_RESCALE_APPLICATIONS": str(applications)}.items():
        monkeypatch.setenv(name, value)
    plan = begun(connection, applications)
    gate = GateRecord(connection, NAME, "gate_all", RUN)
    gate.add(lags(connection, plan, None), 10, "holding")
    source = KafkaSource(lambda _: connection)
    with served(mounted(source)) as url, chromium() as browser:
        context = browser.new_context()
        context.add_cookies([{"name": COOKIE, "value": token_of("ada"), "url": url}])
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{url}{PREFIX}/?application={NAME}")
        every = page.locator("#lag div[aria-label='Lag of every partition']")
        every.wait_for()
        assert f"of {BEFORE:,}" in page.locator("#lag .pager").last.inner_text()
        page.locator("#lag").get_by_label("Order").select_option("by topic")
        page.locator("#lag").get_by_label("Last page").last.click()
        assert every.locator("tbody tr").last.inner_text().split("\t")[1] == f"{BEFORE - 1}"
        page.locator(".node", has_text="totals").first.wait_for()
        assert page.evaluate("document.querySelectorAll('*').length") < 2_000
