"""The control topic on a real broker: one controller at a time, one attempt per job at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Captured, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, LeaseHeld, Outage, Refused, RescaleError, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import CONFIG_VARIABLE
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.control.journal_store import advance, begin
from kafka_rescale.kafka.control.lease import acquire, release

from tests.support import lease_race
from tests.support.cluster.lapses import forget
from tests.support.plans import plan_for

pytestmark = pytest.mark.integration

MANUAL, BACKFILL = "expand/manual__1", "expand/backfill__1"


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(client)


@pytest.fixture
def control(connection: KafkaConnection, unique: str) -> ControlTopic:
    return ControlTopic(connection, unique)


def take(
    control: ControlTopic, owner: str, *, target: int = 8, now_ms: int = 1_000, finished: bool | None = False
) -> Lease:
    state = acquire(control, owner, target, now_ms, ttl_ms=60_000, owner_is_finished=lambda _: finished)
    assert state.lease is not None
    return state.lease


class TestRecords:
    def test_the_topic_is_compacted_and_has_one_partition(self, control: ControlTopic) -> None:
        control.ensure(1)
        control.ensure()
        (topic,) = ClusterAdmin(control.connection).describe_topics([TOPIC]).values()
        assert (topic.partitions, topic.cleanup_policy) == (1, ("compact",))

    def test_nothing_is_known_of_a_new_application(self, control: ControlTopic) -> None:
        assert control.read() == ControlState()

    def test_what_is_written_is_read_by_others_of_the_same_application_only(
        self, control: ControlTopic, connection: KafkaConnection, unique: str
    ) -> None:
        generations = Generations(running=unique, generation=3, retired=("a", "b"))
        written = control.update(lambda _: {"generations": generations, "report": {"findings": []}})
        assert written.generations == generations
        assert ControlTopic(connection, unique).read() == written
        assert ControlTopic(connection, unique[:-1]).read() == ControlState()

    @pytest.mark.parametrize("times", [1, 3])
    def test_a_broker_that_does_not_know_the_topic_yet_is_not_believed(
        self, control: ControlTopic, monkeypatch: pytest.MonkeyPatch, times: int
    ) -> None:
        """Else the application would seem to have no state, and another expansion could begin."""
        written = control.update(lambda _: {"generations": Generations(running="x", generation=3)})
        forget(monkeypatch, "partition_counts", times)
        assert control.read() == written
        seen: list[ControlState] = []
        forget(monkeypatch, "partition_counts", times)
        control.update(lambda state: seen.append(state) or {})
        assert seen == [written]

    def test_none_deletes_a_record(self, control: ControlTopic) -> None:
        control.update(lambda _: {"report": {"a": 1}, "generations": Generations(running="x")})
        assert control.update(lambda _: {"report": None}).report == {}
        assert control.read().report == {}
        assert control.read().generations == Generations(running="x")

    def test_a_change_that_raises_writes_nothing(self, control: ControlTopic) -> None:
        def refuse(_: ControlState) -> Change:
            raise Refused("x", found="a", expected="b", remedy="c")

        with pytest.raises(Refused):
            control.update(refuse)
        assert control.read() == ControlState()

    def test_a_record_of_another_version_is_not_ignored(
        self, control: ControlTopic, client: dict[str, str], unique: str
    ) -> None:
        control.ensure(1)
        producer = Producer(client)
        producer.produce(TOPIC, b'{"no": "lease"}', f"{unique}/lease".encode(), 0)
        producer.flush(20)
        with pytest.raises(UnsafeState, match="this version of the program"):
            control.read()

    def test_what_others_committed_behind_an_open_transaction_is_read(
        self, control: ControlTopic, connection: KafkaConnection, unique: str
    ) -> None:
        """The last stable offset stays before the open transaction.

        A reader that stopped there would see nothing.
        """
        control.ensure(1)
        other = Producer(
            connection.client(
                **{
                    "transactional.id": f"{unique}-other",
                    "transaction.timeout.ms": 2000,
                    "socket.timeout.ms": 2000,
                }
            )
        )
        other.init_transactions(20)
        other.begin_transaction()
        other.produce(TOPIC, b"{}", b"other/report", 0)
        other.flush(20)
        control.update(lambda _: {"report": {"seen": True}})
        assert control.read().report == {"seen": True}


class TestCompareAndSet:
    def test_a_controller_that_was_overtaken_between_reading_and_writing_is_fenced(
        self, control: ControlTopic, connection: KafkaConnection, unique: str
    ) -> None:
        def overtaken(_: ControlState) -> Change:
            ControlTopic(connection, unique).update(lambda _: {"report": {"by": "second"}})
            return {"report": {"by": "first"}}

        with pytest.raises(Fenced):
            control.update(overtaken)
        assert control.read().report == {"by": "second"}

    def test_no_change_of_many_controllers_is_lost(self, connection: KafkaConnection, unique: str) -> None:
        def append(name: str) -> str | None:
            def change(state: ControlState) -> Change:
                return {"report": {**state.report, name: True}}

            try:
                ControlTopic(connection, unique).update(change)
            except (Fenced, Outage):
                return None
            return name

        with ThreadPoolExecutor(3) as pool:
            written = {name for name in pool.map(append, "abcdefghijklmno") if name is not None}
        assert written
        assert ControlTopic(connection, unique).read().report.keys() >= written


def lose_the_next_answer(control: ControlTopic) -> None:
    """Let the next write of ``catch_up`` fail as if a broker did not answer."""
    producer = control._job_writers["catch_up"]._producer
    no_answer = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    lost = SimpleNamespace(begin_transaction=Mock(side_effect=no_answer), poll=producer.poll)
    control._job_writers["catch_up"]._producer = cast(Producer, lost)


class TestResults:
    def test_results_are_kept_per_job_and_fence_no_controller(self, control: ControlTopic) -> None:
        result = JobResult(job="restore/1", run="r", attempt=1, state="running")

        def change(_: ControlState) -> Change:
            control.put_result(result)
            control.put_result(result.model_copy(update={"job": "catch_up"}))
            return {"report": {"written": True}}

        control.update(change)
        state = control.read()
        assert state.results.keys() == {"restore/1", "catch_up"}
        assert (state.results["restore/1"], state.report) == (result, {"written": True})

    def test_a_newer_attempt_fences_the_older_one(
        self, control: ControlTopic, connection: KafkaConnection, unique: str
    ) -> None:
        first = JobResult(job="restore/1", run="r", attempt=1, state="running")
        second = first.model_copy(update={"attempt": 2})
        newer = ControlTopic(connection, unique)
        control.put_result(first)
        newer.put_result(second)
        for _ in range(2):
            with pytest.raises(Fenced):
                control.put_result(first)
        with pytest.raises(Fenced, match="results of attempt 2"):
            ControlTopic(connection, unique).put_result(first)
        newer.put_result(second.model_copy(update={"state": "done"}))
        assert control.read().results["restore/1"].state == "done"

    @pytest.mark.parametrize("run", ["r", "another"])
    def test_behind_an_outage_an_attempt_goes_on_but_does_not_fence_a_newer_one(
        self, control: ControlTopic, connection: KafkaConnection, unique: str, run: str
    ) -> None:
        first = JobResult(job="catch_up", run="r", attempt=1, state="running")
        second = first.model_copy(update={"run": run, "attempt": 2})
        control.put_result(first)
        lose_the_next_answer(control)
        with pytest.raises(Outage):
            control.put_result(first)
        control.put_result(first.model_copy(update={"state": "ready"}))
        assert control.read().results["catch_up"].state == "ready"
        newer = ControlTopic(connection, unique)
        lose_the_next_answer(control)
        with pytest.raises(Outage):
            control.put_result(first)
        newer.put_result(second)
        with pytest.raises(Fenced, match=f"results of attempt 2 of run '{run}'"):
            control.put_result(first)
        newer.put_result(second)


class TestLease:
    def test_a_backfill_beside_a_manual_run_is_refused_and_told_who_holds_it(self, control: ControlTopic) -> None:
        take(control, MANUAL)
        with pytest.raises(LeaseHeld, match=f"a rescale to 8 partitions by {MANUAL}.*Wait for {MANUAL}"):
            take(control, BACKFILL)

    def test_the_same_owner_comes_back(self, control: ControlTopic) -> None:
        assert (take(control, MANUAL).epoch, take(control, MANUAL, now_ms=2_000).epoch) == (1, 1)

    def test_a_lease_that_expired_was_released_or_outlived_its_owner_is_free(self, control: ControlTopic) -> None:
        take(control, MANUAL)
        with pytest.raises(LeaseHeld):
            take(control, BACKFILL, now_ms=60_999, finished=None)
        assert take(control, BACKFILL, now_ms=61_000, finished=None).epoch == 2
        assert take(control, MANUAL, now_ms=61_001, finished=True).epoch == 3
        release(control, MANUAL)
        assert take(control, BACKFILL, now_ms=61_002).epoch == 4

    def test_a_run_that_is_known_to_go_on_keeps_it_however_long_it_takes(self, control: ControlTopic) -> None:
        take(control, MANUAL)
        with pytest.raises(LeaseHeld):
            take(control, BACKFILL, now_ms=10**12, finished=False)

    def test_only_the_owner_releases(self, control: ControlTopic) -> None:
        take(control, MANUAL)
        release(control, BACKFILL)
        with pytest.raises(LeaseHeld):
            take(control, BACKFILL, now_ms=100_000)

    def test_another_target_is_refused_while_an_expansion_is_in_progress(
        self, control: ControlTopic, unique: str
    ) -> None:
        take(control, MANUAL)
        begin(control, plan_for(unique), MANUAL, 1_000)
        release(control, MANUAL)
        with pytest.raises(Refused, match="Finish it by a run with target 8"):
            take(control, BACKFILL, target=16)
        assert take(control, BACKFILL, target=8).epoch == 2

    def test_of_controllers_racing_in_threads_exactly_one_is_granted(
        self, connection: KafkaConnection, unique: str
    ) -> None:
        barrier = Barrier(3)

        def race(owner: str) -> str:
            control = ControlTopic(connection, unique)
            barrier.wait(30)
            try:
                return f"granted to {take(control, owner).owner}"
            except RescaleError as error:
                return str(error) if isinstance(error, LeaseHeld) else repr(error)

        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(race, ("a", "b", "c")))
        lease = ControlTopic(connection, unique).read().lease
        assert lease is not None
        assert [o for o in outcomes if o.startswith("granted")] == [f"granted to {lease.owner}"]
        refusal = f"found a rescale to 8 partitions by {lease.owner}"
        assert sum(refusal in outcome for outcome in outcomes) == 2

    def test_of_controllers_racing_in_processes_exactly_one_is_granted(
        self, client: dict[str, str], connection: KafkaConnection, unique: str
    ) -> None:
        outcomes = race_in_processes(client, unique, (MANUAL, BACKFILL))
        lease = ControlTopic(connection, unique).read().lease
        assert lease is not None
        assert outcomes[lease.owner] == "granted"
        loser = next(owner for owner in outcomes if owner != lease.owner)
        assert outcomes[loser].startswith("LeaseHeld")
        assert f"found a rescale to 8 partitions by {lease.owner}" in outcomes[loser]


class TestJournal:
    def test_the_same_plan_goes_on_and_only_the_owner_changes(self, control: ControlTopic, unique: str) -> None:
        plan = plan_for(unique)
        begun = begin(control, plan, MANUAL, 1)
        again = begin(control, plan, BACKFILL, 2)
        assert again == begun.model_copy(update={"owner": BACKFILL})

    def test_another_plan_is_refused_while_one_is_in_progress(self, control: ControlTopic, unique: str) -> None:
        begin(control, plan_for(unique), MANUAL, 1)
        with pytest.raises(Refused, match="to 8 partitions"):
            begin(control, plan_for(unique, partitions=16), MANUAL, 2)

    def test_a_plan_that_was_rolled_back_begins_as_the_next_attempt_with_nothing_captured(
        self, control: ControlTopic, unique: str
    ) -> None:
        plan = plan_for(unique)
        begin(control, plan, MANUAL, 1)
        advance(control, Phase.QUIESCING, 2)
        advance(control, Phase.QUIESCED, 3, captured=Captured(committed={"in": {0: 5}}))
        advance(control, Phase.ROLLING_BACK, 4)
        advance(control, Phase.ROLLED_BACK, 4)
        for job in ("restore/1", "bridge"):
            control.put_result(JobResult(job=job, run="r", attempt=1, state="done"))
        again = begin(control, plan, MANUAL, 5)
        assert (again.phase, again.attempt, again.captured, again.plan) == (Phase.WARMING, 2, None, plan)
        assert control.read().results.keys() == {"bridge"}

    def test_after_completion_a_new_plan_begins_without_the_results_of_the_old_one(
        self, control: ControlTopic, unique: str
    ) -> None:
        begin(control, plan_for(unique), MANUAL, 1)
        control.put_result(JobResult(job="catch_up", run="r", attempt=1, state="done", detail="attempt 1"))
        for phase in (p for p in Phase if Phase.ROLLING_BACK != p != Phase.ROLLED_BACK):
            advance(control, phase, 2)
        assert begin(control, plan_for(unique), MANUAL, 3).phase is Phase.COMPLETE, (
            "a repeated step changes nothing"
        )
        begun = begin(control, plan_for(unique, 16, generation=3), MANUAL, 3)
        assert (begun.phase, begun.attempt) == (Phase.WARMING, 1)
        assert control.read().results == {}

    def test_steps_are_repeatable_and_never_skipped(self, control: ControlTopic, unique: str) -> None:
        with pytest.raises(UnsafeState, match="no journal"):
            advance(control, Phase.QUIESCING, 1)
        begin(control, plan_for(unique), MANUAL, 1)
        advance(control, Phase.QUIESCING, 2)
        assert advance(control, Phase.QUIESCING, 3, timings={"quiesce": 1.5}).timings == {"quiesce": 1.5}
        with pytest.raises(UnsafeState):
            advance(control, Phase.PROMOTED, 4)

    def test_nobody_but_the_holder_of_the_lease_moves_the_journal(
        self, control: ControlTopic, unique: str
    ) -> None:
        take(control, MANUAL)
        begin(control, plan_for(unique), MANUAL, 1)
        with pytest.raises(Fenced):
            begin(control, plan_for(unique), BACKFILL, 1)
        with pytest.raises(Fenced):
            advance(control, Phase.QUIESCING, 2, holder=BACKFILL)
        assert advance(control, Phase.QUIESCING, 2, holder=MANUAL).phase is Phase.QUIESCING


def race_in_processes(client: dict[str, str], application: str, owners: tuple[str, ...]) -> dict[str, str]:
    """Let every owner try to take the lease at the same time, each in its own process. Return each outcome."""
    package = Path(lease_race.__file__).parents[2] / "plugins"
    environment = {**os.environ, CONFIG_VARIABLE: json.dumps(client), "PYTHONPATH": str(package)}
    processes = {
        owner: subprocess.Popen(
            [sys.executable, lease_race.__file__, application, owner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for owner in owners
    }
    for process in processes.values():
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return {owner: process.communicate(timeout=60)[0].strip() for owner, process in processes.items()}
