"""Jobs by a real ``spark-submit`` that obey a limit, a pause and a resume while they work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.pace import Instruction, Pace, Rate
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.copy_helpers import assert_copied, changelog, create, plan_of, records, write
from tests.integration.spark_job_helpers import SECONDS, advance, begin, captured, submitted, wait_for

pytestmark = pytest.mark.integration

SIZE = 1_000
QUIET_SECONDS = 4.0
"""Longer than the time between a driver's looks at the pace."""


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def say(control: ControlTopic, plan: Plan, limit: int | None, paused: str = "") -> None:
    word = Instruction(by=paused, at_ms=now_ms()) if paused else None
    control.update(lambda _: {"pace": Pace(plan=plan.fingerprint, limit=limit, paused=word)})


def heard(control: ControlTopic, job: str, limit: int | None, *, is_paused: bool) -> Rate:
    """Wait until the job has reported that it obeys."""

    def rate() -> Rate | None:
        found = control.read().rates.get(job)
        return found if found and (found.limit, found.is_paused) == (limit, is_paused) else None

    wait_until(rate, timeout=SECONDS, what=f"{job} to hear of limit {limit}, paused {is_paused}")
    found = rate()
    assert found is not None
    return found


# In `make test`, test_pacing.py limits and pauses the same copy without Spark; the test below has a job that hears
# of it.
@pytest.mark.slow
def test_a_restore_is_limited_paused_and_resumed_and_ends_equal(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    state = changelog(unique, "key-value", 3, 6)
    plan = plan_of(unique, state)
    create(connection, plan)
    control, admin = begin(connection, plan), ClusterAdmin(connection)
    write(connection, state, records(12_000, size=SIZE))

    def position() -> int:
        return sum(admin.committed(plan.copy_group).get(state.source, {}).values())

    say(control, plan, 100_000)
    with submitted(connection, tmp_path, "restore", plan, "--stage", "1") as job:
        wait_until(position, timeout=SECONDS, what="the first records")
        wait_until(
            lambda: heard(control, "restore/1", 100_000, is_paused=False).share == 50_000,
            timeout=SECONDS,
            what="two of three tasks to run at a time",
        )
        say(control, plan, 100_000, paused="ada")
        heard(control, "restore/1", 100_000, is_paused=True)
        time.sleep(1.0)  # for the tasks, which learn of it from their driver
        at = position()
        time.sleep(QUIET_SECONDS)
        assert position() == at, "it has copied in the pause"
        assert 0 < at < 12_000
        say(control, plan, None)
        assert job.result() == 0, job.text()
    assert "restore/1: It may use its limit, 100.0 kB/s" in job.text()
    assert "restore/1: It is paused by ada since" in job.text()
    assert_copied(connection, state)


def test_a_catch_up_that_is_paused_is_not_ready_and_has_no_limit_once_the_application_is_stopped(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    state = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, state)
    create(connection, plan)
    control, admin = begin(connection, plan), ClusterAdmin(connection)
    say(control, plan, 1_000)
    with submitted(connection, tmp_path, "catch_up", plan, "--acceptable-lag", "10") as job:
        wait_for(control, "catch_up", "ready")
        say(control, plan, 1_000, paused="ada")
        heard(control, "catch_up", 1_000, is_paused=True)
        wait_for(control, "catch_up", "running")
        say(control, plan, 1_000)
        wait_for(control, "catch_up", "ready")
        # At 1 kB/s, the copy would take an hour and a half.
        write(connection, state, records(5_000, size=SIZE))
        ends = captured(plan, lambda topic: admin.end_offsets([topic])[topic], {})
        advance(control, Phase.QUIESCING)
        advance(control, Phase.QUIESCED, captured=ends)
        wait_for(control, "catch_up", "done")
        assert job.result() == 0, job.text()
    assert_copied(connection, state)
