"""`bridged`: a producer moves to the new topic while others go on writing, so the bridge's lag is rarely 0."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.cli.exit_codes import OUTAGE, PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.bridging import prepare
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy.bridge_tasks import CarryOn

from testbed.processes import wait_until
from tests.integration.copy.test_bridge_two_layouts import at_work
from tests.integration.copy_helpers import expected_partition
from tests.integration.spark_job_helpers import advance, begin
from tests.support.small_application import write

pytestmark = pytest.mark.integration
Client = Mapping[str, str]
Printed = pytest.CaptureFixture[str]
OLD, NEW = 4, 6


@pytest.fixture
def config(client: Client, tmp_path: Path) -> str:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{k} = {v}\n" for k, v in client.items()))
    return str(file)


@pytest.fixture
def bridge(client: Client, unique: str) -> tuple[Move, Plan, ControlTopic]:
    """An expansion whose bridge is prepared, before its promotion."""
    old, new = f"{unique}-orders", f"{unique}-orders-p{NEW}"
    move = Move(
        kind=MoveKind.INPUT, source=old, target=new, store=old, source_partitions=OLD, target_partitions=NEW
    )
    stage = Stage(index=1, name="stage_1_subtopology_0", subtopology=0, bridges=(move,))
    plan = Plan(
        application=unique,
        generation=2,
        blue=unique,
        green=f"{unique}-g2",
        partitions=NEW,
        stages=(stage,),
        inputs=(),
    )
    connection = KafkaConnection(dict(client))
    admin = ClusterAdmin(connection)
    admin.ensure_topic(old, OLD, 1, {})
    admin.ensure_topic(new, NEW, 1, {})
    control = begin(connection, plan)
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    return move, plan, control


def promote(control: ControlTopic, move: Move) -> None:
    fence = Captured(committed={move.source: dict.fromkeys(range(OLD), 0)})
    advance(control, Phase.PROMOTED, captured=fence)


def send(producer: Producer, topic: str, key: bytes) -> None:
    producer.produce(topic, b"v", key, expected_partition("", key, OLD))
    producer.poll(0)


@contextmanager
def writing(client: Client, topic: str) -> Iterator[None]:
    """Let other producers go on writing to the old topic during the block."""
    ended = threading.Event()

    def write_on() -> None:
        producer, count = Producer({**client, "linger.ms": 5}), 0
        while not ended.wait(0.001):
            count += 1
            send(producer, topic, b"other-%d" % (count % 50))
        producer.flush(30)

    thread = threading.Thread(target=write_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)


def test_it_returns_while_others_write_on(
    client: Client,
    config: str,
    bridge: tuple[Move, Plan, ControlTopic],
    unique: str,
    tmp_path: Path,
    capsys: Printed,
) -> None:
    move, plan, control = bridge
    connection = KafkaConnection(dict(client))
    admin, file = ClusterAdmin(connection), str(write(tmp_path, unique))
    own = Producer(dict(client))
    for i in range(2_000):
        send(own, move.source, b"own-%d" % i)
    assert own.flush(30) == 0
    promote(control, move)
    with (
        writing(client, move.source),
        at_work(CarryOn(connection, plan, 1, "session"), [units_of([move])], control),
    ):
        before = admin.end_offsets([move.source])[move.source]
        assert main(["bridged", file, "--config", config, "--topic", move.source, "--json"]) == PASSED
        carried = admin.committed(plan.bridge_group)[move.source]
        printed = capsys.readouterr()
        found = json.loads(printed.out)
        assert "records left to carry on" in printed.err
        ends = {int(p): end for p, end in found["ends"][move.source].items()}
        assert all(ends[p] >= before[p] for p in before), "what this producer had flushed is below the ends"
        assert all(carried[p] >= ends[p] for p in ends)
        assert found["successors"] == {move.source: move.target}
        wait_until(
            lambda: admin.end_offsets([move.source])[move.source] != before,
            timeout=30,
            what="the records of the others",
        )


def test_an_open_transaction_is_waited_for_and_a_bridge_that_is_away_is_told(
    client: Client,
    config: str,
    bridge: tuple[Move, Plan, ControlTopic],
    unique: str,
    tmp_path: Path,
    capsys: Printed,
) -> None:
    move, plan, control = bridge
    file = str(write(tmp_path, unique))
    promote(control, move)
    producer = Producer({**client, "transactional.id": unique})
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, move.source, b"k")
    producer.flush(30)
    asked = ["bridged", file, "--config", config, "--seconds", "2"]
    assert main(asked) == OUTAGE
    printed = capsys.readouterr().err
    assert "1 of 1 records left to carry on, 1 partitions not begun; the bridge is NOT AT WORK" in printed
    with at_work(CarryOn(KafkaConnection(dict(client)), plan, 1, "session"), [units_of([move])], control):
        assert main(asked) == OUTAGE, "the transaction is open"
        producer.commit_transaction(30)
        assert main(["bridged", file, "--config", config]) == PASSED
    assert f"Write to the new topic: {move.source} -> {move.target}" in capsys.readouterr().out


def test_it_says_what_is_not_bridged_or_not_yet(
    client: Client,
    config: str,
    bridge: tuple[Move, Plan, ControlTopic],
    unique: str,
    tmp_path: Path,
    capsys: Printed,
) -> None:
    move, plan, control = bridge
    file = str(write(tmp_path, unique))
    assert main(["bridged", file, "--config", config]) == REFUSED
    assert f"nothing may be written to {move.target}" in capsys.readouterr().err
    assert main(["bridged", file, "--config", config, "--topic", "other"]) == REFUSED
    assert f"topic 'other': found no bridge that carries it on; expected {move.source}" in capsys.readouterr().err
    bare = plan.model_copy(update={"stages": (plan.stages[0].model_copy(update={"bridges": ()}),)})
    control.update(lambda _: {"journal": Journal(plan=bare, phase=Phase.COMPLETE)})
    assert main(["bridged", file, "--config", config]) == REFUSED
    assert "found no expansion with a `repartitioned` input" in capsys.readouterr().err
