"""A follower reads each record of the control topic once. Within the pause, it is asked twenty times a second."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.journal_follower import JournalFollower

from testbed.processes import wait_until
from tests.support.plans import plan_for

pytestmark = pytest.mark.integration
LOOKS = 50


def result(job: str, state: str) -> JobResult:
    return JobResult(job=job, run="a run", attempt=1, state=state)


def test_only_what_is_new_is_read(client: dict[str, str], unique: str) -> None:
    control, another = (ControlTopic(KafkaConnection(client), name) for name in (unique, f"{unique}-b"))
    control.ensure()
    for number in range(20):
        another.put_result(result("catch_up", str(number)))
    control.put_result(result("catch_up", "ready"))
    with control.follow() as follower:
        begun = follower.received
        assert begun >= 21
        for _ in range(LOOKS):
            assert follower.heard("catch_up") == (1, result("catch_up", "ready"))
        assert follower.received == begun
        for state in ("running", "running", "done"):
            control.put_result(result("catch_up", state))
        control.put_result(result("catch_up/1", "running"))
        another.put_result(result("catch_up", "failed"))
        wait_until(lambda: follower.heard("catch_up")[0] == 5, timeout=30, what="the news")
        assert follower.heard("catch_up")[1] == result("catch_up", "done")
        assert follower.heard("bridge") == (0, None)
        read = follower.received - begun
        print(f"{LOOKS} looks and 5 changes: {read} records read")
        assert read <= 5


def test_a_sign_of_life_counts_and_leaves_the_result_as_it_is(client: dict[str, str], unique: str) -> None:
    control = ControlTopic(KafkaConnection(client), unique)
    control.ensure()
    control.put_result(result("catch_up", "ready"))
    with control.follow() as follower:
        control.put_sign(result("catch_up", "running"))
        control.put_sign(result("bridge", "running"))
        wait_until(lambda: follower.heard("bridge")[0] == 1, timeout=30, what="the signs")
        assert follower.heard("catch_up") == (2, result("catch_up", "ready"))
        assert follower.heard("bridge") == (1, None)
    assert set(control.read().results) == {"catch_up"}


def test_a_deletion_is_heard_like_any_other_record(client: dict[str, str], unique: str) -> None:
    """A message of the client library without a value has no length, so it is false."""
    connection, plan = KafkaConnection(client), plan_for("shop")
    control = ControlTopic(connection, unique)
    control.ensure()
    control.update(
        lambda _: {
            Concern.JOURNAL: Journal(plan=plan),
            Concern.LEASE: Lease(owner="a run", epoch=1, target=8, expires_at_ms=0),
        }
    )
    control.put_result(result("catch_up", "ready"))
    with control.follow() as follower, JournalFollower(connection, unique) as jobs:
        assert jobs.first() is not None
        assert (jobs.holder(), follower.heard("catch_up")[1]) == ("a run", result("catch_up", "ready"))
        control.update(lambda _: {Concern.JOURNAL: None, Concern.LEASE: None, Concern.PACE: None})
        wait_until(lambda: jobs.latest() is None, timeout=30, what="the deletion of the journal")
        assert jobs.holder() == ""
    with JournalFollower(connection, unique) as later:
        assert later.first() is None
