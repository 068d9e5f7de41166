"""The embedded broker: its life cycle. It never outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testbed import broker_config
from testbed.archives.broker_training import ensure_broker_archive
from testbed.broker import BrokerError, EmbeddedBroker
from testbed.broker_command import main
from testbed.processes import is_running, wait_until

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
RESTARTS: list[Callable[[EmbeddedBroker], object]] = [
    lambda broker: broker.restart(),
    lambda broker: (broker.kill(), broker.start()),
]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    # After a crash, the controller lets the broker back in when its session has expired. The default is 9 s.
    with EmbeddedBroker(tmp_path / "broker", properties={"broker.session.timeout.ms": "2000"}) as running:
        yield running


def create_topic(client: dict[str, str], name: str) -> None:
    admin = AdminClient(dict(client))
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()


# In `make test`, test_copy_outage.py stops a broker in order or kills it, and goes on copying.
@pytest.mark.slow
@pytest.mark.parametrize("restart", RESTARTS, ids=["restart", "kill"])
def test_acknowledged_records_survive(
    own_broker: EmbeddedBroker, restart: Callable[[EmbeddedBroker], object]
) -> None:
    client, before = own_broker.client_config(), own_broker.pid
    create_topic(client, "kept")
    producer = Producer({**client, "log_level": 0})
    producer.produce("kept", b"value")
    assert producer.flush(30) == 0

    restart(own_broker)

    assert own_broker.pid not in {None, before}
    assert own_broker.client_config() == client
    consumer = Consumer({**client, "group.id": "any", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == b"value"


# In `make test`, the tests of test_held_compaction.py see the properties that they give their broker.
@pytest.mark.slow
def test_properties_replace_the_defaults(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, properties={"auto.create.topics.enable": "true"}) as broker:
        producer = Producer(broker.client_config())
        producer.produce("made-up", b"value")
        assert producer.flush(30) == 0


# In `make test`, test_spark_archive.py has how an archive is made, used and done without.
@pytest.mark.slow
def test_it_starts_from_the_archive_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_config, "ARCHIVES", tmp_path / "archives")
    archive = ensure_broker_archive()
    assert archive is not None
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        assert str(archive) in Path(f"/proc/{broker.pid}/maps").read_text()


def test_a_second_start_on_the_same_directory_is_refused(own_broker: EmbeddedBroker) -> None:
    with pytest.raises(BrokerError, match=f"broker {own_broker.pid} already runs"):
        EmbeddedBroker(own_broker.directory).start()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"(?s)failed.*log\.retention\.ms"):
        EmbeddedBroker(tmp_path, properties={"log.retention.ms": "soon"}).start()


# In `make test`, test_kafka_connection.py logs in at such a broker, and is refused.
@pytest.mark.slow
def test_clients_must_log_in_if_there_are_users(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, sasl_users={"alice": "right", "bob": "also right"}) as broker:
        for user in ("alice", "bob"):
            create_topic(broker.client_config(user), f"topic-of-{user}")
        wrong = broker.client_config() | {"sasl.password": "wrong", "log_level": "0"}
        with pytest.raises(KafkaException):
            AdminClient(wrong).list_topics(timeout=3)


def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from testbed.broker import EmbeddedBroker;"
        "broker = EmbeddedBroker(sys.argv[1]).start(); print(broker.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(pid), timeout=30, what="the end of the broker")


def test_a_detached_broker_is_started_and_stopped_by_different_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(name: str) -> tuple[int, str]:
        return main([name, "--directory", str(tmp_path)]), capsys.readouterr().out

    assert command("status") == (3, f"{tmp_path}: stopped\n")
    try:
        code, first = command("start")
        assert code == 0
        assert "runs at 127.0.0.1:" in first
        assert command("start") == (0, first)
        assert command("status") == (0, first)
    finally:
        assert command("stop") == (0, f"{tmp_path}: stopped\n")
    assert command("status")[0] == 3
