"""The flights application on a real broker ends with the expected results, and a wrong result is noticed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from testbed.broker import EmbeddedBroker
from testbed.flights import Dataset, load
from testbed.jars import DEMO_SOURCES, ensure_demo_classes
from testbed.outputs import Comparison, compare_with_expected
from testbed.processes import wait_until
from testbed.progress import Progress
from testbed.replay import Replay
from testbed.topics import FLIGHTS, create_inputs, create_outputs, partition_count

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.integration
PARTITIONS = 4
RUN = str(DEMO_SOURCES / "run.sh")
Client = dict[str, str]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A broker for this module, because the application's input topics have fixed names, and one of them grows."""
    with EmbeddedBroker(tmp_path_factory.mktemp("flights-broker"), heap="768m") as broker:
        yield broker.client_config()


@pytest.fixture(scope="module")
def sent(client: Client) -> Dataset:
    """Flights of three weeks, in topic ``flights``."""
    create_inputs(client, PARTITIONS)
    dataset = load(limit=20_000)
    replay = Replay(client, dataset)
    replay.send_planes()
    replay.send_at_once(15_000)
    replay.send_at_rate(100_000, report=lambda sent: None)
    replay.flush()
    return dataset


@contextmanager
def running(application: str, environment: dict[str, str]) -> Iterator[Callable[[str], int]]:
    """Run the application during the block, and give a function that runs another command of its life cycle."""

    def command(name: str) -> int:
        return subprocess.run([RUN, name, application], env={**os.environ, **environment}, check=False).returncode

    ensure_demo_classes()
    assert command("start") == 0
    try:
        yield command
    finally:
        assert command("stop") == 0


# In `make test`, test_expansion_crash.py and test_broker_faults.py compare what it has made, each with its own
# guarantee, and test_embedded_expected.py has wrong results, which are found.
@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_results_are_as_expected_and_corruption_is_found(
    guarantee: str, sent: Dataset, client: Client, unique: str, tmp_path: Path
) -> None:
    create_outputs(client, PARTITIONS, prefix=f"{unique}-")
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": client["bootstrap.servers"],
        "FLIGHTS_STATE_ROOT": str(tmp_path),
        "FLIGHTS_GUARANTEE": guarantee,
        "FLIGHTS_OUTPUT_PREFIX": f"{unique}-",
        "FLIGHTS_OPTIONS": "--commit-interval-ms 500",
    }

    def compare() -> Comparison:
        return compare_with_expected(client, sent, application_id=unique, output_prefix=f"{unique}-")

    with running(unique, environment) as command:
        assert command("start") == 0
        assert command("status") == 0
        topic = f"{unique}-aircraft-sessions-changelog"
        wait_until(lambda: topic in AdminClient(client).list_topics(timeout=10).topics, timeout=60, what=topic)
        wait_until(lambda: compare().equal, timeout=180, what="the expected results")
    assert command("status") == 3

    counts = compare().counts
    assert counts[f"{unique}-aircraft-totals-changelog"] == len(sent.expected_totals())
    assert counts[f"{unique}-airport-hourly-output"] == len(sent.expected_hourly())
    corrupt(client, f"{unique}-aircraft-totals-output", next(iter(sent.expected_totals())))
    (difference,) = compare().differences
    assert difference.startswith(f"{unique}-aircraft-totals-output")


def corrupt(client: Client, topic: str, key: str) -> None:
    """Overwrite one result with a wrong one."""
    producer = Producer({**client, "partitioner": "murmur2_random"})
    producer.produce(topic, key=key, value='{"flights":0}')
    assert producer.flush(30) == 0


# In `make test`, U/test_replay_pace.py has its pace; every live application is fed by one that is told to hurry.
@pytest.mark.slow
def test_a_replay_that_is_stopped_goes_on_where_it_was(sent: Dataset, client: Client, tmp_path: Path) -> None:
    # Given a topic that already holds records of another replay, only added records count here.
    before = end_of_topic(client)
    file = tmp_path / "progress.json"
    arguments = ["--bootstrap-servers", client["bootstrap.servers"], "--progress-file", str(file)]
    command = [sys.executable, "-m", "testbed.replay", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"}

    # When it is stopped in the middle, the topic grows, and it is started again and told to hurry
    first = subprocess.Popen([*command, "--limit", "3000", "--preload", "1000", "--rate", "50"], env=environment)
    wait_until(lambda: end_of_topic(client) >= before + 1000, timeout=60, what="the preloaded flights")
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 0
    stopped = Progress.read(file)
    assert stopped is not None
    assert stopped.state == "stopped"
    assert end_of_topic(client) == before + stopped.sent
    admin = AdminClient(client)
    admin.create_partitions([NewPartitions(FLIGHTS, PARTITIONS + 1)])[FLIGHTS].result()
    second = subprocess.Popen([*command, "--rate", "1"], env=environment)
    wait_until(lambda: "running" in file.read_text(), timeout=60, what="the second replay")
    second.send_signal(signal.SIGUSR1)

    # Then everything has been sent once
    assert second.wait(60) == 0
    finished = Progress.read(file)
    assert finished == Progress("finished", 3000, 3000, stopped.shift_hours)
    assert end_of_topic(client) == before + 3000
    assert partition_count(client, FLIGHTS) == PARTITIONS + 1


def end_of_topic(client: Client) -> int:
    """The number of records ever written to ``flights``. The topic has neither transactions nor compaction."""
    consumer = Consumer({**client, "group.id": "any"})
    partitions = consumer.list_topics(FLIGHTS, timeout=30).topics[FLIGHTS].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(FLIGHTS, p), timeout=30)[1] for p in partitions]
    consumer.close()
    return sum(ends)
