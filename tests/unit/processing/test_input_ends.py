"""Every level of a run reads the inputs up to the same ends, however late its jobs begin."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.pipeline import STRING, JoinWindows, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.task import Record, SubTopology, TaskProcessor
from kafka_rescale.core.processing.adjustments import NOTHING_ASKED
from kafka_rescale.core.processing.growth import Declared, observed
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.processing import prepare
from kafka_rescale.spark.processing.task_work import TaskWork
from kafka_rescale.spark.processing.work import input_ends, works_of

from tests.support.processing.pipeline_driver import MemoryStore

T0 = 1_700_000_000_000
ORDERS, RUN_EVERY = 300, 60
REPARTITION = "app-by-id-left-repartition"
REPARTITION_OF_TABLE_JOIN = "app-by-id-repartition"


def paid_orders() -> Pipeline:
    """Level 1 gives each order its id as key; level 2 joins it with its payment, which it reads directly."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=STRING, value=STRING).select_key(lambda _, order: order, key=STRING)
    payments = builder.stream("payments", key=STRING, value=STRING)
    window = JoinWindows.of(timedelta(seconds=5))
    serdes: dict[str, Any] = {"key": STRING, "value": STRING, "other_value": STRING}
    joined = orders.left_join(payments, lambda order, payment: f"{payment}", window, name="by-id", **serdes)
    joined.to("paid", key=STRING, value=STRING)
    return builder.build()


def prices_of_orders() -> Pipeline:
    """Level 1 writes the output ``amounts`` and gives each order its id as key; level 2 joins both."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=STRING, value=STRING).select_key(lambda _, order: order, key=STRING)
    builder.stream("payments", key=STRING, value=STRING).to("amounts", key=STRING, value=STRING)
    amounts = builder.table("amounts", key=STRING, value=STRING, store="amounts")
    joined = orders.join(amounts, lambda _, amount: amount, name="by-id", key=STRING, value=STRING)
    joined.to("paid", key=STRING, value=STRING)
    return builder.build()


class Brokers:
    """The logs of topics that have one partition each when they begin."""

    def __init__(self, *topics: str) -> None:
        self.logs: dict[str, list[Record]] = {topic: [] for topic in topics}
        self.new_partitions: dict[str, dict[int, int]] = {}

    def append(self, topic: str, seconds: float, key: bytes | None, value: bytes | None) -> None:
        at = len(self.logs[topic])
        self.logs[topic].append(Record(topic, 0, at, T0 + int(seconds * 1000), key, value))

    def end_offsets(self, topics: Iterable[str], read_committed: bool = True) -> PartitionOffsets:
        return {topic: {0: len(self.logs[topic])} | self.new_partitions.get(topic, {}) for topic in topics}

    def existing_topics(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        return {topic: TopicDescription(topic, 1, 1) for topic in topics}


class Run:
    """The pipeline on its brokers. An order comes every second, and is paid two seconds later."""

    def __init__(self, pipeline: Pipeline | None = None) -> None:
        self.pipeline, self.now = pipeline or paid_orders(), 0
        self.brokers = Brokers("orders", "payments", "amounts", REPARTITION, REPARTITION_OF_TABLE_JOIN)
        self.admin = cast(ClusterAdmin, self.brokers)
        parts = self.pipeline.sub_topologies()
        self.first = next(part for part in parts if "orders" in part.sources)
        self.second = next(part for part in parts if "paid" in part.sinks)
        declared = Declared({}, self.pipeline.topology.repartitions)
        counts = {topic: 1 for part in parts for topic in part.sources}
        self.processors = observed(PipelineProcessors(), parts, counts, declared, (), at_ms=1)
        self.positions = dict.fromkeys(self.brokers.logs, 0)
        self.tasks: dict[int, TaskProcessor] = {
            part.id: part.processor({s.name: MemoryStore([]) for s in part.stores}, 0) for part in parts
        }

    def pass_seconds(self, seconds: int) -> None:
        for second in range(self.now, self.now + seconds):
            if second < ORDERS:
                self.brokers.append("orders", second, None, b"%d" % second)
            if 0 <= second - 2 < ORDERS:
                self.brokers.append("payments", second, b"%d" % (second - 2), b"paid")
        self.now += seconds

    def input_ends(self) -> PartitionOffsets:
        return input_ends(self.admin, self.pipeline, "app", self.processors)

    def work(self, part: SubTopology, inputs: PartitionOffsets) -> TaskWork:
        tasks = [TaskId(part.id, 0)]
        (work,) = works_of(self.admin, self.pipeline, "app", tasks, "/", self.processors, inputs=inputs)
        return work

    def process(self, part: SubTopology, inputs: PartitionOffsets) -> list[bytes]:
        """Process a level up to the ends of its work; return what it writes to the output."""
        work, outputs = self.work(part, inputs), list[bytes]()
        read = [self.brokers.logs[t][self.positions[t] : end] for (t, _), end in work.ends.items()]
        self.positions |= {topic: end for (topic, _), end in work.ends.items()}
        for record in heapq.merge(*read, key=lambda record: record.timestamp_ms):
            own = replace(record, topic=work.own_names[record.topic])
            for emitted in self.tasks[part.id].process(own):
                if emitted.topic == "paid":
                    outputs.append(emitted.value or b"")
                else:
                    seconds = (emitted.timestamp_ms - T0) / 1000
                    self.brokers.append(REPARTITION, seconds, emitted.key, emitted.value)
        return outputs


def test_a_join_behind_a_repartition_topic_misses_no_pair_although_level_2_begins_later() -> None:
    run, results = Run(), list[bytes]()
    while run.now < ORDERS + 2 * RUN_EVERY:
        run.pass_seconds(RUN_EVERY)
        ends = run.input_ends()
        run.process(run.first, ends)
        run.pass_seconds(20)
        results += run.process(run.second, ends)
    assert results == [b"paid"] * ORDERS


def test_level_2_reads_its_input_up_to_the_end_at_the_assignment() -> None:
    run = Run()
    run.pass_seconds(10)
    ends = run.input_ends()
    assert ends == {"orders": {0: 10}, "payments": {0: 8}}
    run.process(run.first, ends)
    run.pass_seconds(10)
    for _ in ("the first attempt", "a retry"):
        assert run.work(run.second, ends).ends == {("payments", 0): 8, (REPARTITION, 0): 10}


def test_an_input_that_has_lost_its_end_since_is_read_up_to_the_end_that_it_has() -> None:
    run = Run()
    run.pass_seconds(10)
    ends = run.input_ends()
    del run.brokers.logs["payments"][5:]
    assert run.work(run.second, ends).ends["payments", 0] == 5


def test_a_partition_that_has_come_since_the_assignment_is_left_to_the_next_run() -> None:
    """Its keys come from an older partition, whose earlier records lie behind the end of this run."""
    run = Run()
    run.pass_seconds(10)
    ends = run.input_ends()
    run.brokers.new_partitions["payments"] = {1: 3}
    payments = run.processors.topics["payments"].model_copy(update={"partitions": 2})
    topics, linear = run.processors.topics | {"payments": payments}, {"payments": 1}
    run.processors = run.processors.model_copy(update={"topics": topics, "linear": linear})
    assert run.work(run.second, ends).ends == {("payments", 0): 8, ("payments", 1): 0, (REPARTITION, 0): 0}


def test_a_topic_that_the_pipeline_writes_itself_is_read_as_far_as_the_level_before_has_written() -> None:
    run = Run(prices_of_orders())
    run.pass_seconds(10)
    ends = run.input_ends()
    assert ends.keys() == {"orders", "payments"}
    read = ("amounts", REPARTITION_OF_TABLE_JOIN)
    for topic in read:
        run.brokers.append(topic, 9, b"7", b"paid")
    assert run.work(run.second, ends).ends == {(topic, 0): 1 for topic in read}


def test_the_assignment_of_an_earlier_version_has_no_ends_and_the_present_ones_count() -> None:
    run = Run()
    run.pass_seconds(10)
    assert run.work(run.second, Processing().input_ends).ends["payments", 0] == 8
    assert "input_ends" not in Processing().model_dump()


@pytest.mark.parametrize(("later", "read_to"), [(12, 12), (9, 10)])
def test_a_run_that_is_begun_again_keeps_its_assignment_and_reads_what_has_come_since(
    later: int, read_to: int
) -> None:
    """A backfill that is created once more has the run id of the first one.

    A try that was frozen knows earlier ends than those to which the first level has read by now.
    """
    before = Processing(run="run", at_ms=1, tasks={0: 1, 1: 1}, input_ends={"orders": {0: 10}})
    state = ControlState(processing=before)
    control = SimpleNamespace(update=lambda change: state.model_copy(update=dict(change(state))))
    known, application = SimpleNamespace(counts=before.tasks), SimpleNamespace(rack_standby_task_assignor=None)
    given: list[Any] = [application, control, known, {"orders": {0: later}}, None, "run"]
    after, told = prepare._rebalance(*given, NOTHING_ASKED)
    assert (after, told) == (before.model_copy(update={"input_ends": {"orders": {0: read_to}}}), ())
