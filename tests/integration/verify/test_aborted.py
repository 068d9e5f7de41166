"""Records that a new generation has lost in aborted transactions are found in its topics, on a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_rescale.cli.exit_codes import FINDINGS, PASSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.verify.aborted import Aborted
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.verify import aborted
from kafka_rescale.operations.verify.aborted import look_for_aborted

from tests.support.small_application import application, topic_configs, write

pytestmark = pytest.mark.integration

Key = tuple[str, int]
"""A key and its timestamp."""


class Green:
    """A new generation as brokers see it: it writes to its topics and commits its inputs, in transactions."""

    def __init__(self, connection: KafkaConnection, name: str) -> None:
        self.connection, self.admin = connection, ClusterAdmin(connection)
        declared = application(name)
        counts = dict.fromkeys(topic_configs(name), 4)
        plan = build_plan(declared, topology_of(declared), blue=name, generation=2, current=counts, target=8)
        self.input, self.output, self.group = f"{name}-customers", f"{name}-out", plan.green
        self.store = plan.changelogs[0].target
        for topic in (self.input, self.output, self.store):
            self.admin.ensure_topic(topic, 1, 1, {})
        self.journal = Journal(
            plan=plan,
            phase=Phase.STARTED,
            captured=Captured(committed={self.input: {0: 0}}),
            green_start={self.input: {0: 0}},
            green_ends={self.store: {0: 0}},
            output_ends={self.output: {0: 0}},
        )
        self.admin.commit(self.group, {self.input: {0: 0}})
        self.producer = self.transactional(f"{plan.green}-thread-1")

    def transactional(self, name: str) -> Producer:
        producer = Producer(self.connection.client(**{"transactional.id": name}))
        producer.init_transactions(30)
        return producer

    def receive(self, count: int) -> None:
        producer = Producer(self.connection.client())
        for number in range(count):
            producer.produce(self.input, b"in", b"%d" % number)
        assert producer.flush(30) == 0

    def write(self, keys: Sequence[Key], topic: str = "") -> None:
        for key, timestamp in keys:
            self.producer.produce(topic or self.output, b"result", key.encode(), timestamp=timestamp)
        assert self.producer.flush(30) == 0

    def abort(self, *keys: Key, topic: str = "") -> None:
        self.producer.begin_transaction()
        self.write(keys, topic)
        self.producer.abort_transaction(30)

    def commit(self, *keys: Key, upto: int, topic: str = "") -> None:
        self.producer.begin_transaction()
        self.write(keys, topic)
        self.commit_inputs(upto)

    def commit_inputs(self, upto: int) -> None:
        consumer = Consumer(self.connection.client(**{"group.id": self.group}))
        offsets = [TopicPartition(self.input, 0, upto)]
        self.producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        self.producer.commit_transaction(30)
        consumer.close()

    def look(self) -> Aborted:
        return look_for_aborted(self.connection, self.journal)


@pytest.fixture
def green(client: dict[str, str], unique: str) -> Green:
    return Green(KafkaConnection(client), unique)


def test_what_is_aborted_and_written_again_is_found_to_be_there(green: Green) -> None:
    green.receive(3)
    green.abort(("a", 10), ("b", 20))
    green.commit(("b", 20), ("a", 10), ("c", 30), upto=3)
    (found,) = green.look().topics
    assert (found.topic, found.records, found.again, found.lost) == (green.output, 2, 2, 0)


def test_what_is_aborted_and_passed_by_a_commit_is_lost(green: Green) -> None:
    """So does Kafka Streams when it closes a task dirty, and does not set the others of the thread back."""
    green.receive(3)
    green.abort(("a", 10), ("b", 20))
    green.abort(("total", 20), topic=green.store)
    green.commit(("c", 30), upto=3)
    found = {each.topic: each for each in green.look().topics}
    assert {topic: each.lost for topic, each in found.items()} == {green.output: 2, green.store: 1}
    assert [bytes.fromhex(r.key) for r in found[green.output].first] == [b"a", b"b"]
    assert [str(each) for each in found[green.output].findings] == [f"{green.output}-0:0-1"]


def test_what_green_has_not_processed_yet_is_not_called_lost(green: Green) -> None:
    green.receive(3)
    green.abort(("a", 10), ("b", 20))
    found = green.look()
    assert (found.undecided, found.lost, found.unprocessed) == (2, 0, (f"{green.input}-0",))
    green.commit(("a", 10), ("b", 20), ("c", 30), upto=3)
    again = green.look()
    assert (again.undecided, again.lost, again.unprocessed) == (0, 0, ())


def test_a_record_without_a_key_may_come_again_in_another_partition(green: Green) -> None:
    green.admin.grow_topic(green.output, 2)
    ends = {green.output: {0: 0, 1: 0}}
    green.journal = green.journal.model_copy(update={"output_ends": ends})
    green.receive(2)
    for upto, partition in ((0, 0), (2, 1)):
        green.producer.begin_transaction()
        green.producer.produce(green.output, b"result", None, partition, timestamp=10)
        if upto:
            green.commit_inputs(upto)
        else:
            assert green.producer.flush(30) == 0
            green.producer.abort_transaction(30)
    (found,) = green.look().topics
    assert (found.records, found.again, found.lost) == (1, 1, 0)


def test_an_open_transaction_is_waited_for(green: Green, monkeypatch: pytest.MonkeyPatch) -> None:
    green.receive(1)
    green.abort(("a", 10))
    other = green.transactional(f"{green.group}-thread-2")
    other.begin_transaction()
    other.produce(green.output, b"result", b"a", timestamp=10)
    assert other.flush(30) == 0
    green.commit(upto=1)
    assert look_for_aborted(green.connection, green.journal, still_seconds=0).undecided == 1
    # It commits at the moment when the look finds it open. Clients sleep, too: only the look's own sleep does it.
    clock = SimpleNamespace(sleep=lambda _: other.commit_transaction(30), monotonic=time.monotonic)
    monkeypatch.setattr(aborted, "time", clock)
    (found,) = green.look().topics
    assert (found.again, found.lost) == (1, 0)


def test_without_transactions_nothing_is_waited_for(green: Green) -> None:
    green.receive(3)
    producer = Producer(green.connection.client())
    for topic in (green.output, green.store):
        producer.produce(topic, b"result", b"a")
    assert producer.flush(30) == 0
    assert green.look() == Aborted()


def test_a_generation_that_has_written_nothing_yet_may_still_abort(green: Green) -> None:
    green.receive(1)
    assert green.look() == Aborted(unprocessed=(f"{green.input}-0",))


def test_what_another_application_aborts_in_an_output_is_its_own_affair(green: Green, unique: str) -> None:
    green.receive(1)
    green.commit(("c", 30), upto=1)
    green.producer = green.transactional(f"another-{unique}")
    green.abort(("a", 10))
    assert green.look() == Aborted()


def test_what_takes_too_long_to_read_is_told(green: Green, monkeypatch: pytest.MonkeyPatch) -> None:
    green.receive(1)
    green.abort(("a", 10))
    green.commit(("c", 30), upto=1)
    monkeypatch.setattr(aborted, "READING_SECONDS", -1.0)
    found = green.look()
    assert (found.topics, found.unread) == ((), (f"{green.output}-0",))


def test_what_blue_has_aborted_before_is_not_looked_at(green: Green) -> None:
    green.receive(1)
    green.abort(("a", 10))
    green.commit(("c", 30), upto=1)
    ends = green.admin.end_offsets([green.output], read_committed=False)
    green.journal = green.journal.model_copy(update={"output_ends": ends, "green_ends": {}})
    green.receive(1)
    green.commit(("d", 40), upto=2)
    assert green.look() == Aborted()


def test_the_shell_names_what_is_lost(
    green: Green, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = write(tmp_path, unique), tmp_path / "kafka.json"
    config.write_text(json.dumps(dict(green.connection.config)))
    control = ControlTopic(green.connection, unique)
    control.ensure()
    control.update(lambda _: {"journal": green.journal})
    assert main(["aborted", str(file), "--config", str(config)]) == PASSED
    assert "has aborted no transaction with records" in capsys.readouterr().out
    green.receive(2)
    green.abort(("order-7", 10))
    green.commit(("c", 30), upto=2)
    assert main(["aborted", str(file), "--config", str(config), "--json"]) == FINDINGS
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["topic"], topic["lost"]) == (green.output, 1)
    assert main(["aborted", str(file), "--config", str(config)]) == FINDINGS
    shown = capsys.readouterr().out
    assert "1 records in aborted transactions (1 lost)" in shown
    assert b"order-7".hex() in shown
