"""What the page shows of a real broker, and what it says without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.page.health import Level
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lag_gate_record import GateRecord
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion.stages import lags
from kafka_rescale.web.kafka_source import KafkaSource

from testbed.broker import EmbeddedBroker
from testbed.processes import free_ports
from tests.support.made_topics import make_topics
from tests.support.small_application import application, write

pytestmark = pytest.mark.integration

NAME = "shop"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="256m") as started:
        client = started.client_config()
        make_topics(client, NAME)
        yield client


@pytest.fixture
def applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write(tmp_path, NAME)
    return tmp_path


def test_it_shows_the_counts_of_the_cluster_and_what_the_gate_has_measured(
    broker: dict[str, str], applications: Path
) -> None:
    connection = KafkaConnection(broker)
    before = KafkaSource(lambda _: connection).page(NAME)
    assert (before.summary.partitions, before.summary.phase) == (4, None)
    assert before.summary.health.state == "stopped"
    assert {node.now for node in before.graph.nodes} == {4}

    run = f"expand_{NAME}/run-1"
    plan = plan_on(connection)
    ControlTopic(connection, NAME).update(lambda _: {Concern.JOURNAL: Journal(plan=plan, owner=run)})
    measured = lags(connection, plan, None)
    gate = GateRecord(connection, NAME, "gate_all", run)
    gate.add(measured, 10, "holding")
    gate.add([each.model_copy(update={"position": each.end}) for each in measured], 10, "open")

    after = KafkaSource(lambda _: connection).page(NAME)
    assert (after.summary.target, after.threshold, after.work.step) == (8, 10, "gate_all")
    (history,) = after.lags
    assert [max(sample.worst) for sample in history.history.samples] == [NO_POSITION, 0]
    assert {lag for topic in after.lags_now for lag in topic.lags} == {0}


def test_what_a_job_has_left_before_it_kept_its_lags_is_still_read(broker: dict[str, str]) -> None:
    old = JobResult(job="restore/1", run="r", attempt=1, state="done").model_dump(mode="json", exclude={"lags"})
    assert JobResult.model_validate(old).lags.samples == ()
    assert PartitionProgress(topic="t", partition=0, position=0, end=0).records == 0


def test_a_broker_that_is_away_and_a_file_that_is_wrong_leave_the_others_alone(
    broker: dict[str, str], applications: Path
) -> None:
    write(applications, "away", kafka_conn_id="away")
    (applications / "wrong.yaml").write_text("application_id: wrong\npartitions: none\n")
    nobody = KafkaConnection({"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"})
    source = KafkaSource({"away": nobody, "kafka_default": KafkaConnection(broker)}.__getitem__)
    lines = {name: source.summary(name) for name in source.applications()}
    assert list(lines) == ["away", NAME, "wrong"]
    assert [line.health.level for line in lines.values()] == [Level.BAD, Level.ATTENTION, Level.BAD]
    assert "wrong.yaml:2: partitions" in lines["wrong"].health.reason
    with pytest.raises(LookupError, match=r"127\.0\.0\.1"):
        source.page("away")


def plan_on(connection: KafkaConnection) -> Plan:
    """Return the plan to 8 partitions."""
    declared = application(NAME)
    topology = topology_of(declared)
    names = [f"{NAME}-{each}" for each in ("orders", "customers", "totals", "by-customer-repartition")]
    names += [f"{NAME}-{store}-changelog" for store in topology.stores]
    counts = {name: found.partitions for name, found in ClusterAdmin(connection).describe_topics(names).items()}
    return build_plan(declared, topology, blue=NAME, generation=2, current=counts, target=8)
