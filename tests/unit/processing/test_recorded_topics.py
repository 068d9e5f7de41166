"""What a pipeline's record becomes when its first store, or a part behind a repartition topic, is added to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.pipeline import BYTES, StreamsBuilder
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.operations.processing.topics import PipelineTopics

Edit = Callable[[KStream], object]


def stateless(moves: KStream) -> None:
    moves.to("out")


def counted(moves: KStream) -> None:
    moves.group_by_key().count(store="per")


def counted_by_another_key(moves: KStream) -> None:
    moves.select_key(lambda key, value: value).group_by_key(name="by-value").count(store="per")


@dataclass
class Admin:
    """A cluster with an input and an output, and with whatever else it was given."""

    partitions: dict[str, int] = field(default_factory=lambda: {"moves": 2, "out": 2})

    begins: PartitionOffsets = field(default_factory=dict)
    ends: PartitionOffsets = field(default_factory=dict)

    def begin_offsets(self, names: Iterable[str]) -> PartitionOffsets:
        return {name: self.begins[name] for name in names}

    def end_offsets(self, names: Iterable[str], *, read_committed: bool = True) -> PartitionOffsets:
        assert not read_committed, "records of a transaction that is still open would count as well"
        return {name: self.ends[name] for name in names}

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        return {n: TopicDescription(n, self.partitions[n], 1) for n in names if n in self.partitions}


@pytest.fixture
def admin() -> Admin:
    return Admin()


def record(
    admin: Admin, edit: Edit, known: PipelineProcessors | None = None, linear: dict[str, int] | None = None
) -> PipelineProcessors:
    return topics_of(admin, edit, linear).record(known or PipelineProcessors())


def topics_of(admin: Admin, edit: Edit, linear: dict[str, int] | None = None) -> PipelineTopics:
    declared = {"application_id": "app", "runtime": "spark", "pipeline": "m:p", "state.dir": "/s"}
    application = PipelineApplication.model_validate({**declared, "linear_hashing": linear or {}})
    builder = StreamsBuilder()
    edit(builder.stream("moves", key=BYTES, value=BYTES))
    return PipelineTopics(application, builder.build(), admin)  # type: ignore[arg-type]


def test_a_first_store_begins_with_the_partitions_that_its_input_has_now(admin: Admin) -> None:
    """Without a store, an input may grow under any partitioner. No linear hashing over two was ever true."""
    before = record(admin, stateless)
    admin.partitions["moves"] = 3
    grown = record(admin, stateless, before)
    assert grown.tasks == {0: 2}
    counts = record(admin, counted, grown).sub_topologies[0]
    assert (counts.initial, counts.count) == (3, 3)


def test_a_first_store_keeps_the_processors_that_were_added(admin: Admin) -> None:
    linear = {"moves": 2}
    before = record(admin, stateless, linear=linear)
    admin.partitions["moves"] = 4
    grown = record(admin, stateless, before, linear).with_counts(0, count=4)
    counts = record(admin, counted, grown, linear).sub_topologies[0]
    assert (counts.initial, counts.count) == (2, 4)


def test_a_deleted_changelog_is_state_that_is_gone(admin: Admin) -> None:
    linear = {"moves": 2}
    before = record(admin, counted, linear=linear)
    admin.partitions |= {"moves": 4, "app-per-changelog": 4}
    grown = record(admin, counted, before, linear).with_counts(0, count=4)
    assert record(admin, counted, grown, linear).tasks == {0: 4}
    del admin.partitions["app-per-changelog"]
    assert record(admin, counted, grown, linear).tasks == {0: 2}


@pytest.mark.parametrize("before", [stateless, counted])
def test_a_part_behind_a_new_repartition_topic_is_only_new(admin: Admin, before: Edit) -> None:
    def more(moves: KStream) -> None:
        before(moves)
        moves.select_key(lambda key, value: value).group_by_key(name="more").count(store="more")

    known = record(admin, before)
    admin.partitions |= {"app-per-changelog": 2} if before is counted else {}
    assert record(admin, more, known).tasks == {0: 2, 1: 2}


def test_the_usual_first_aggregation_may_be_added(admin: Admin) -> None:
    assert record(admin, counted_by_another_key, record(admin, stateless)).tasks == {0: 2, 1: 2}


def test_a_pipeline_begins_anew_only_beside_repartition_topics_that_are_empty(admin: Admin) -> None:
    topic = "app-by-value-repartition"
    topics_of(admin, counted_by_another_key).require_no_rest([])
    admin.partitions |= {topic: 2}
    admin.begins, admin.ends = {topic: {0: 4, 1: 0}}, {topic: {0: 4, 1: 9}}
    with pytest.raises(UnsafeState, match=topic):
        topics_of(admin, counted_by_another_key).require_no_rest([])
    topics_of(admin, counted_by_another_key).require_no_rest([("moves", 0)])
    admin.partitions |= {"app-per-changelog": 2}
    topics_of(admin, counted_by_another_key).require_no_rest([])
    del admin.partitions["app-per-changelog"]
    admin.begins = admin.ends
    topics_of(admin, counted_by_another_key).require_no_rest([])
