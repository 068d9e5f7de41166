"""The move job for all stages on a real broker. Spark's tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.plan.plan import Plan, Stage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.spark.copy import tasks as copy_tasks
from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import T0, Record, read
from tests.support.in_place_logs import (
    Log,
    assert_moved,
    captured_of,
    changelog,
    grown,
    history,
    in_place,
    moving,
    repartition,
    written,
)

pytestmark = pytest.mark.integration


@dataclass
class InProcess:
    """A stand-in for Spark: it runs the tasks of an action one after the other.

    :param dies_at: number of the action that fails, counting from 1. With 0, none fails.
    """

    dies_at: int = 0
    actions: int = 0
    lists: list[Any] = field(default_factory=list)

    def parallelize(self, lists: list[Any], _: int) -> InProcess:
        self.lists = lists
        return self

    def mapPartitions(self, task: Callable[[list[Any]], Iterator[Any]]) -> Any:  # noqa: N802
        return SimpleNamespace(collect=lambda: self._run(task))

    def _run(self, task: Callable[[list[Any]], Iterator[Any]]) -> list[Any]:
        self.actions += 1
        if self.actions == self.dies_at:
            raise RuntimeError("the driver was killed")
        return list(task(self.lists))


@dataclass
class Stopped:
    """An application of two stages that was stopped for its growth, and the content of its topics at that time."""

    connection: KafkaConnection
    plan: Plan
    before: dict[str, Log]
    monkeypatch: pytest.MonkeyPatch

    def move(self, attempt: int, spark: InProcess) -> dict[str, JobResult]:
        """Run an attempt, and return the results in the control topic."""
        self.monkeypatch.setattr(Job, "spark", lambda _: SimpleNamespace(sparkContext=spark))
        arguments = Arguments(self.plan.application, "test", attempt)
        try:
            move(Job("move", arguments, self.connection))
        finally:
            self.results = ControlTopic(self.connection, self.plan.application).read().results
        return self.results

    def log(self, stage: int) -> Log:
        """The content of a stage's changelog now."""
        return read(self.connection, self.plan.stage(stage).changelogs[0].source)

    def assert_moved(self) -> None:
        for each in self.plan.changelogs:
            assert_moved(each, self.before[each.source], read(self.connection, each.source))


@pytest.fixture
def stopped(broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    monkeypatch.setattr(copy_tasks, "begin_process", lambda: None)
    connection = KafkaConnection(broker.client_config())
    downstream = changelog(f"{unique}-b", 4, 6), repartition(unique, 4, 6)
    upstream = (changelog(f"{unique}-a", 4, 6),)
    stages = tuple(
        Stage(index=i, name=f"stage_{i}_subtopology_{2 - i}", subtopology=2 - i, moves=moves)
        for i, moves in enumerate((downstream, upstream), start=1)
    )
    plan = in_place(unique, *downstream).model_copy(update={"stages": stages})
    before = {m.source: written(connection, m, history(200)) for m in plan.changelogs}
    flying = [Record(b"k%d" % (i % 7), b"%d" % i, T0 + i) for i in range(60)]
    before[downstream[1].source] = written(connection, downstream[1], flying)
    captured = captured_of(connection, plan, {0: 3})
    grown(connection, plan)
    journal = Journal(plan=plan, phase=Phase.PROMOTED, captured=captured)
    ControlTopic(connection, unique).update(lambda _: {"journal": journal})
    return Stopped(connection, plan, before, monkeypatch)


def test_one_action_per_stage_moves_everything_and_leaves_a_result_per_stage(stopped: Stopped) -> None:
    spark = InProcess()
    results = stopped.move(1, spark)
    stopped.assert_moved()
    assert spark.actions == 2
    assert {key: result.state for key, result in results.items()} == dict.fromkeys(
        ("move", "move/1", "move/2"), "done"
    )
    upstream = stopped.plan.stage(2).changelogs[0]
    expected = sum(map(len, moving(upstream, stopped.before[upstream.source]).values()))
    assert results["move/2"].records == expected > 0
    assert results["move"].records == results["move/1"].records + results["move/2"].records


def test_killed_between_two_stages_it_goes_on_with_the_second(stopped: Stopped) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        stopped.move(1, InProcess(dies_at=2))
    assert {key: result.state for key, result in stopped.results.items()} == {
        "move": "running",
        "move/1": "done",
        "move/2": "running",
    }
    first = stopped.log(1)
    results = stopped.move(2, InProcess())
    assert stopped.log(1) == first
    assert (results["move/1"].records, results["move"].records) == (0, results["move/2"].records)
    stopped.assert_moved()
    assert {result.state for result in results.values()} == {"done"}
