"""A program that was edited: the processors of a sub-topology follow its topics to the new number."""

from __future__ import annotations

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts, SourceTopic
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.processing.growth import Declared, observed
from kafka_rescale.core.processing.renumbered import left_tasks, renumbered

from tests.unit.processing.test_growth import Part

MOVES, AIRPORTS, BOTH = ("moves",), ("airports",), ("airports", "moves")
GROWN = ProcessorCounts(initial=2, count=3, sources=MOVES)


def record(**changes: object) -> PipelineProcessors:
    """One sub-topology, which reads ``moves``; with keywords, its counts are changed."""
    return PipelineProcessors(sub_topologies={0: GROWN.model_copy(update=changes)})


def test_a_stream_that_is_added_in_front_moves_the_processors_with_their_topics() -> None:
    parts = [Part(0, AIRPORTS), Part(1, MOVES)]
    assert renumbered(record(), parts).sub_topologies == {1: GROWN}
    assert left_tasks(record(), parts) == [TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)]


def test_one_that_is_removed_moves_them_back() -> None:
    before = PipelineProcessors(
        sub_topologies={0: ProcessorCounts(initial=4, count=4, sources=AIRPORTS), 1: GROWN}
    )
    assert renumbered(before, [Part(0, MOVES)]).sub_topologies == {0: GROWN}
    assert left_tasks(before, [Part(0, MOVES)]) == [TaskId(1, 0), TaskId(1, 1), TaskId(1, 2)]


@pytest.mark.parametrize("parts", [[Part(0, MOVES)], [Part(0, MOVES), Part(1, AIRPORTS)]])
def test_what_keeps_its_place_keeps_its_record_also_while_processors_are_added(parts: list[Part]) -> None:
    expanding = record(expanding_to=4)
    assert renumbered(expanding, parts) == expanding
    assert left_tasks(expanding, parts) == []


def test_a_topic_may_be_replaced_by_another_one() -> None:
    assert renumbered(record(), [Part(0, ("moves-v2",))]) == record()


@pytest.mark.parametrize("changes", [{"expanding_to": 4}, {"growing_to": 4}])
def test_a_number_must_not_change_while_processors_are_added(changes: dict[str, int]) -> None:
    """The new processors' copies belong to the old number; the switch would bury keys that nobody has copied."""
    with pytest.raises(Refused, match=r"sub-topology 1, which reads moves: found the number 0 in the last run"):
        renumbered(record(**changes), [Part(0, AIRPORTS), Part(1, MOVES)])


def test_topics_of_different_processors_must_not_be_read_together() -> None:
    before = PipelineProcessors(
        sub_topologies={0: ProcessorCounts(initial=4, count=4, sources=AIRPORTS), 1: GROWN}
    )
    with pytest.raises(Refused, match=r"different numbers of processors \(airports: 4; moves: 3\)"):
        renumbered(before, [Part(0, BOTH)])
    equal = before.with_counts(0, initial=2, count=3)
    assert renumbered(equal, [Part(0, BOTH)]).sub_topologies[0].count == 3
    assert renumbered(before, [Part(0, BOTH, stores=())]).sub_topologies[0].count == 4, "no key has state"


def test_of_merged_sub_topologies_none_may_be_growing_under_another_number() -> None:
    before = PipelineProcessors(
        sub_topologies={0: GROWN.model_copy(update={"sources": AIRPORTS}), 1: GROWN}
    ).with_counts(1, growing_to=4)
    with pytest.raises(Refused, match="found the number 1 in the last run, and processors that are being added"):
        renumbered(before, [Part(0, BOTH)])


class TestRecordOfAnEarlierVersion:
    """It knows the topics and the numbers, but not which number reads which topic."""

    EARLIER = observed(PipelineProcessors(), [Part(0, MOVES)], {"moves": 4}, Declared({"moves": 2}, ()), (0,), 1)
    EARLIER = EARLIER.with_counts(0, sources=(), expanding_to=4)

    def test_is_taken_as_it_is_if_the_program_was_not_edited(self) -> None:
        assert renumbered(self.EARLIER, [Part(0, MOVES)]) == self.EARLIER
        assert renumbered(self.EARLIER, [Part(0, MOVES), Part(1, AIRPORTS)]) == self.EARLIER
        assert renumbered(PipelineProcessors(), [Part(0, MOVES)]) == PipelineProcessors()

    def test_is_refused_if_a_stream_was_added_in_front(self) -> None:
        with pytest.raises(Refused, match="an earlier version has not recorded the topics"):
            renumbered(self.EARLIER, [Part(0, AIRPORTS), Part(1, MOVES)])

    def test_is_refused_if_a_stream_was_removed(self) -> None:
        both = self.EARLIER.model_copy(
            update={
                "sub_topologies": {**self.EARLIER.sub_topologies, 1: ProcessorCounts(initial=4, count=4)},
                "topics": {**self.EARLIER.topics, "airports": SourceTopic(partitions=4)},
            }
        )
        assert renumbered(both, [Part(0, MOVES), Part(1, AIRPORTS)]) == both
        with pytest.raises(Refused, match="an earlier version has not recorded the topics"):
            renumbered(both, [Part(0, AIRPORTS)])

    def test_a_topic_may_be_replaced_by_another_one(self) -> None:
        assert renumbered(self.EARLIER, [Part(0, ("moves-v2",))]) == self.EARLIER
