"""Two real instances behind the warm-up gate: both have to live until the end and keep their first tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.expansion import restoring
from kafka_rescale.operations.expansion.restoring import Changed, Restoring

from testbed.broker import EmbeddedBroker
from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import StreamsMember, streams_member

pytestmark = pytest.mark.integration

SETTINGS = {
    "default.client.supplier": "org.kafkarescale.WarmUpGate",
    "group.protocol": "classic",
    "session.timeout.ms": "45000",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A broker that waits long enough for all members before the first assignment, even on a busy machine."""
    patient = {"group.initial.rebalance.delay.ms": "15000"}
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="512m", properties=patient) as running:
        yield running.client_config()


@contextmanager
def two_behind_the_gate(
    client: dict[str, str], unique: str, directory: Path
) -> Iterator[tuple[Restoring, list[StreamsMember]]]:
    """Two instances behind the gate. Each has a part of a changelog with records in every partition."""
    admin, changelog, count = ClusterAdmin(KafkaConnection(client)), f"{unique}-counts-changelog", 4
    admin.ensure_topic(unique, count, 1, {})
    admin.ensure_topic(changelog, count, 1, {"cleanup.policy": "compact"})
    producer = Producer(client)
    for partition in range(count):
        producer.produce(changelog, (7).to_bytes(8, "big"), b"k", partition)
    assert producer.flush(20) == 0
    admin.commit(gate_group(unique), {unique: {0: count}})
    watch = Restoring(admin, unique, admin.begin_offsets([changelog]), admin.end_offsets([changelog]))
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                streams_member(
                    client["bootstrap.servers"],
                    unique,
                    unique,
                    directory / name,
                    SETTINGS,
                    jars=[ensure_gate_jar()],
                )
            )
            for name in ("a", "b")
        ]
        wait_until(lambda: watch.look().is_open and watch.is_stable, timeout=120, what="both to have restored")
        yield watch, members


def test_instances_that_live_to_the_end_tell_so_and_one_that_dies_is_noticed_before_its_session_times_out(
    client: dict[str, str], unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "SILENT_SECONDS", 10.0)
    with two_behind_the_gate(client, unique, tmp_path) as (watch, members):
        assert len(watch.first) == 2
        assert [len(of) for of in watch.first.values()] == [2, 2]
        wait_until(watch.all_live, timeout=60, what="both to tell that they live")
        assert len(watch.counted or ()) == 2
        assert watch.look().is_open

        # Another watch: one of its instances dies after everything was restored
        members[1].kill()
        later, told = replace(watch, counted=None), list[str]()

        def noticed() -> bool:
            assert later.look().is_open, "every changelog is told to be at its end"
            assert later.is_stable
            try:
                assert not later.all_live()
            except Changed as error:
                told.append(str(error))
            return bool(told)

        wait_until(noticed, timeout=60, what="the one that has died to be noticed")
        assert told == ["1 of 2 instances have ended after they had restored"]


# In `make test`, U/test_prewarm_steps.py::test_members_that_change_in_every_try_are_a_failure_with_its_reason
@pytest.mark.slow
def test_one_whose_tasks_another_has_taken_over_is_noticed(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    with two_behind_the_gate(client, unique, tmp_path) as (watch, members):
        members[0].kill()
        watch.admin.remove_members(unique)
        with pytest.raises(Changed, match="of 2 members have gone while they restored"):
            wait_until(lambda: watch.look() is None, timeout=120, what="the other one's assignment")
