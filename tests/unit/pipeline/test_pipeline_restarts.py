"""A task that is made anew from its stores and its checkpoint goes on as if it had never stopped."""

from __future__ import annotations

import json
import random

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import LONG, STRING, JoinWindows, StreamsBuilder, TimeWindows
from kafka_rescale.core.pipeline.task import CHECKPOINT_CHARACTERS, Record, SubTopology

from tests.support.processing.pipeline_driver import MemoryStore, PipelineDriver
from tests.support.processing.pipeline_programs import PROGRAMS, built, program_records, seconds


@pytest.mark.parametrize("name", PROGRAMS)
def test_restarts_change_nothing(name: str) -> None:
    records = program_records(name, 120)
    chance, restarted = random.Random(name), PipelineDriver(built(name))
    for each in records:
        if chance.random() < 0.3:
            restarted.restart()
        restarted.pipe(each.topic, each.key, each.value, each.timestamp, (("h", each.header),))
    assert {t: w for t, w in restarted.written.items() if w} == PipelineDriver(built(name)).pipe_all(records)


@pytest.mark.parametrize("name", ["windows", "sessions", "narrow_stream_stream_joins"])
def test_without_its_checkpoint_a_task_would_not_know_what_is_late(name: str) -> None:
    records = program_records(name, 120)
    forgetful = PipelineDriver(built(name))
    for each in records:
        for sub in built(name).sub_topologies():
            forgetful.tasks[sub.id] = sub.processor(forgetful.stores, 0)
        forgetful.pipe(each.topic, each.key, each.value, each.timestamp, (("h", each.header),))
    assert forgetful.written != PipelineDriver(built(name)).pipe_all(records)


def test_a_checkpoint_fits_into_the_metadata_of_an_offset() -> None:
    for name in PROGRAMS:
        driver = PipelineDriver(built(name))
        driver.pipe_all(program_records(name, 50))
        assert all(len(t.checkpoint()) <= CHECKPOINT_CHARACTERS for t in driver.tasks.values())


def test_a_task_whose_checkpoint_could_become_too_long_is_refused() -> None:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=STRING, value=STRING) for topic in ("left", "right"))
    for number in range(20):
        left.join(right, lambda one, two: one, JoinWindows.of(seconds(1))).to(f"out-{number}")
    with pytest.raises(InvalidInput, match="fit into the metadata of offsets"):
        PipelineDriver(builder.build())


def test_what_a_checkpoint_does_not_know_begins_anew() -> None:
    task = PipelineDriver(built("windows")).tasks[0]
    task.restore('{"":7,"an operation that is gone":9}')
    assert task.stream_time() == 7


def joined_and_counted(*, added: bool = False, swapped: bool = False) -> SubTopology:
    """A left join and counts of both sides. Their stores have names.

    :param added: whether there is one more operation. It changes the generated names of others.
    """
    builder = StreamsBuilder()
    streams = [builder.stream(topic, key=STRING, value=STRING) for topic in ("left", "right")]
    if added:
        streams[0].filter(lambda key, value: False).map_values(str, value=STRING).to("extra")
    pairs = streams[0].left_join(
        streams[1], lambda one, two: f"{one}|{two}", JoinWindows.of(seconds(5)), store="pairs"
    )
    pairs.to("pairs", value=STRING)
    for topic, stream in sorted(zip(("left", "right"), streams, strict=True), reverse=swapped):
        stream.group_by_key().windowed_by(TimeWindows(seconds(10))).count(store=topic).to_stream().to(f"{topic}s")
    return builder.build().sub_topologies()[0]


class Restarted:
    """A task whose program may differ after a restart."""

    def __init__(self) -> None:
        self._stores = {store.name: MemoryStore([]) for store in joined_and_counted().stores}
        self.start(joined_and_counted())

    def start(self, part: SubTopology, checkpoint: str = "") -> None:
        self.task = part.processor(self._stores, 0)
        self.task.restore(checkpoint)

    def pipe(self, topic: str, second: int, key: bytes = b"k") -> list[bytes | None]:
        return [each.value for each in self.task.process(Record(topic, 0, 0, second * 1_000, key, b"v"))]


FORMER = {
    "~pairs-this-join-store": "KSTREAM-MERGE-0000000006",
    "<pairs-this-join-store": "KSTREAM-MERGE-0000000006-earliest",
    "~left": "KSTREAM-AGGREGATE-0000000008",
    "~right": "KSTREAM-AGGREGATE-0000000011",
}
"""The names that older checkpoints have for times that now have the names of stores."""


def with_former_names(checkpoint: str) -> str:
    return json.dumps({FORMER.get(name, name): value for name, value in json.loads(checkpoint).items()})


class TestTimesAreThoseOfStores:
    def ahead(self) -> Restarted:
        """A task whose right side is 100 s ahead of its left side."""
        restarted = Restarted()
        restarted.pipe("left", 100, b"a")
        restarted.pipe("right", 200, b"b")
        return restarted

    @pytest.mark.parametrize("added", [False, True])
    def test_an_operation_that_is_added_gives_no_other_one_the_time_of_a_third(self, added: bool) -> None:
        restarted = self.ahead()
        restarted.start(joined_and_counted(added=added), restarted.task.checkpoint())
        assert restarted.pipe("left", 104, b"c") == [b"v|None", LONG.encode(1)], "on time for its count"
        assert restarted.pipe("right", 180, b"c") == [], "late for its count"
        assert restarted.task.dropped_records() == 1

    @pytest.mark.parametrize("added", [False, True])
    def test_a_record_that_waits_comes_out_whatever_is_known_of_the_times(self, added: bool) -> None:
        for forgets in (False, True):
            restarted = Restarted()
            restarted.pipe("left", 100, b"a")
            checkpoint = "" if forgets else restarted.task.checkpoint()
            restarted.start(joined_and_counted(added=added), checkpoint)
            assert b"v|None" in restarted.pipe("right", 300)

    def test_a_checkpoint_of_the_same_program_may_have_the_names_of_nodes(self) -> None:
        restarted = self.ahead()
        checkpoint = restarted.task.checkpoint()
        restarted.start(joined_and_counted(), with_former_names(checkpoint))
        assert restarted.task.checkpoint() == checkpoint

    @pytest.mark.parametrize("other", [{"added": True}, {"swapped": True}])
    def test_names_of_nodes_of_another_program_are_nobodys(self, other: dict[str, bool]) -> None:
        restarted = self.ahead()
        restarted.start(joined_and_counted(**other), with_former_names(restarted.task.checkpoint()))
        known = json.loads(restarted.task.checkpoint())
        assert (known["@left"], known["@right"]) == (100_000, 200_000)
        assert [known[name] for name in ("~left", "~right", "~pairs-this-join-store")] == [-1, -1, -1]
        assert restarted.pipe("left", 104, b"c")[-1] == LONG.encode(1)
