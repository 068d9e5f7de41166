"""Preflight of a real Kafka Streams application finds nothing, until the file says something wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.core.application.topics import Output
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, poll_until
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.preflight.preflight import Preflight, preflight

from testbed.broker import EmbeddedBroker
from testbed.flights import load
from testbed.jars import DEMO_SOURCES, ensure_demo_classes
from testbed.replay import Replay
from testbed.topics import create_inputs, create_outputs

pytestmark = pytest.mark.integration
RUN = str(DEMO_SOURCES / "run.sh")
FILE = Path(__file__).parents[3] / "applications" / "flights.yaml"
FLIGHTS = 3000


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """A broker for this module. The application runs on 4 partitions and has processed its input."""
    ensure_demo_classes()
    root = tmp_path_factory.mktemp("flights")
    with EmbeddedBroker(root / "broker", heap="768m") as broker:
        client = broker.client_config()
        create_inputs(client, 4)
        create_outputs(client, 4)
        replay = Replay(client, load(limit=FLIGHTS))
        replay.send_planes()
        replay.send_at_once(FLIGHTS)
        replay.flush()
        with pytest.MonkeyPatch.context() as environment:
            # In the environment of this process, because preflight runs the `status` command.
            environment.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
            environment.setenv("FLIGHTS_STATE_ROOT", str(root))
            environment.setenv("FLIGHTS_OPTIONS", "--commit-interval-ms 200")
            subprocess.run([RUN, "start", "flights"], check=True)
            try:
                found = KafkaConnection(client)
                wait_until_processed(found)
                yield found
            finally:
                subprocess.run([RUN, "stop", "flights"], check=True)


def wait_until_processed(connection: KafkaConnection) -> None:
    """Wait until the application has committed the ends of its input and repartition topics."""
    admin = ClusterAdmin(connection)
    topics = ("flights", "flights-by-aircraft-repartition", "flights-by-airport-repartition")

    def is_processed() -> bool:
        ends, committed = admin.end_offsets(topics, if_present=True), admin.committed("flights")
        return len(ends) == len(topics) and all(
            committed.get(topic, {}).get(p, 0) == end for topic, by_p in ends.items() for p, end in by_p.items()
        )

    poll_until(is_processed, seconds=90, otherwise=lambda: pytest.fail("the input was not processed"))


def run(connection: KafkaConnection, target: int, **changes: object) -> Preflight:
    """Run preflight for the repository's own application file, with some fields changed."""
    application = load_application(FILE)
    return preflight(
        application.model_copy(update=changes),
        topology_of(application),
        connection,
        target=target,
        owner="expand/run-1",
        now_ms=now_ms(),
        owner_is_finished=lambda _: False,
        expected=ExpectedState.RUNNING,
    )


# In `make test`, every live expansion of the flights begins with such a preflight.
@pytest.mark.slow
@pytest.mark.parametrize("target", [6, 8])
def test_a_running_application_may_grow(connection: KafkaConnection, target: int) -> None:
    result = run(connection, target)
    assert result.plan is not None
    assert {(m.source_partitions, m.target_partitions) for m in result.plan.moves} == {(4, target)}
    assert [s.name for s in result.plan.stages] == [
        "stage_1_subtopology_2",
        "stage_2_subtopology_1",
        "stage_3_subtopology_0",
    ]
    assert not [line for line in result.messages if "not yet processed" in line]


# In `make test`, test_cli.py::test_plan_and_its_refusals
@pytest.mark.slow
def test_the_present_count_is_nothing_to_do(connection: KafkaConnection) -> None:
    outputs = tuple(not_growing(o) for o in load_application(FILE).outputs)
    assert run(connection, 4, outputs=outputs).noop


def not_growing(output: Output) -> Output:
    """Declare an output that shall not grow."""
    return output.model_copy(update={"partitions": None})


# In `make test`, test_refusals_data.py has such findings, on records that a test has written.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "wrong", "names"),
    [
        ("airport-hourly", "session", "The sampled keys fit window or timestamped-window"),
        ("aircraft-sessions", "timestamped-window", "The sampled keys fit session"),
        ("aircraft-sessions", "key-value", "cleanup.policy compact,delete; expected compact"),
        ("aircraft-totals", "timestamped-window", "The sampled keys fit timestamped-key-value"),
    ],
)
def test_a_wrong_store_type_is_found_in_real_changelogs(
    connection: KafkaConnection, store: str, wrong: str, names: str
) -> None:
    declared = load_application(FILE).stores
    stores = tuple(s.model_copy(update={"type": wrong}) if s.name == store else s for s in declared)
    with pytest.raises(PreflightRefused) as error:
        run(connection, 8, stores=stores)
    assert names in str(error.value)
    assert {f.what for f in error.value.findings} == {f"topic 'flights-{store}-changelog'"}


# In `make test`, test_refusals_data.py::test_records_of_a_librdkafka_producer
@pytest.mark.slow
def test_a_wrong_partitioner_is_found_in_every_topic_that_real_keys_decide(connection: KafkaConnection) -> None:
    application = load_application(FILE)
    stores = tuple(s.model_copy(update={"partitioner": "crc32"}) for s in application.stores)
    inputs = tuple(i.model_copy(update={"partitioner": "crc32"}) for i in application.inputs)
    with pytest.raises(PreflightRefused) as error:
        run(connection, 8, stores=stores, inputs=inputs)
    changelogs = {f"topic 'flights-{s.name}-changelog'" for s in stores}
    assert {f.what for f in error.value.findings} == {"topic 'planes'", *changelogs}
    assert all(
        f.remedy == "All of them fit murmur2: declare `partitioner: murmur2`." for f in error.value.findings
    )


def test_the_text_in_the_repository_is_what_the_program_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_demo_classes()
    monkeypatch.setenv("FLIGHTS_STATE_ROOT", str(tmp_path))
    printed = subprocess.run([RUN, "describe", "flights"], capture_output=True, text=True, check=True).stdout
    application = load_application(FILE)
    assert topology_of(application.model_copy(update={"topology": printed})) == topology_of(application)
