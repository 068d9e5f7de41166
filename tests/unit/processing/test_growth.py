"""How a pipeline handles more partitions and processors than at the beginning (KIP-287)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import InvalidInput, Refused, UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.growth import Declared, observed
from kafka_rescale.core.processing.growth_checks import require_order
from kafka_rescale.core.processing.processor_expansion import expanded
from kafka_rescale.core.processing.state_copies import NewTask, new_tasks
from kafka_rescale.core.processing.static_topic import Placement

KEYS = [b"k%d" % number for number in range(400)]
COUNTS = StoreDefinition("counts", "timestamped-key-value")
WINDOWS = StoreDefinition("windows", "timestamped-window")


@dataclass(frozen=True)
class Part:
    """The counts of a sub-topology."""

    id: int = 0
    sources: tuple[str, ...] = ("in",)
    sinks: tuple[str, ...] = ()
    stores: tuple[StoreDefinition, ...] = (COUNTS,)


LINEAR = Declared({"in": 2}, ())
UNDECLARED = Declared({}, ())


def seen(
    known: PipelineProcessors, counts: Mapping[str, int], declared: Declared = LINEAR, part: Part | None = None
) -> PipelineProcessors:
    """The record after a run that finds so many partitions. Without a known record, it begins anew."""
    part = part or Part()
    anew = () if part.id in known.sub_topologies else (part.id,)
    return observed(known, [part], counts, declared, anew, at_ms=1_000)


def begun(partitions: int = 2, declared: Declared = LINEAR) -> PipelineProcessors:
    return seen(PipelineProcessors(), {"in": partitions}, declared)


def test_a_pipeline_that_never_grows_has_a_processor_for_each_partition() -> None:
    record = begun(3, UNDECLARED)
    assert record.tasks == {0: 3}
    assert [record.sub_topologies[0].of(n, 3) for n in range(3)] == [[0], [1], [2]]
    assert seen(record, {"in": 3}, UNDECLARED) == record


def test_the_initial_processors_are_those_that_the_inputs_began_with() -> None:
    record = begun(4)
    assert (record.sub_topologies[0].initial, record.sub_topologies[0].count) == (2, 2)
    assert [record.sub_topologies[0].of(n, 4) for n in range(2)] == [[0, 2], [1, 3]]
    assert not record.topics["in"].is_settled, "what was written to two partitions comes first"


def test_growing_partitions_keeps_the_processors() -> None:
    grown = seen(begun(), {"in": 8})
    assert grown.sub_topologies == begun().sub_topologies
    assert (grown.topics["in"].partitions, grown.topics["in"].grown_at_ms) == (8, 1_000)
    assert PipelineProcessors.model_validate_json(grown.model_dump_json()) == grown


def test_a_backfill_reads_keys_that_have_moved_in_their_order_or_not_at_all() -> None:
    live, whole = seen(begun(), {"in": 8}), begun(8, UNDECLARED)
    require_order(live, begun(8), [Part()], LINEAR)
    require_order(whole, whole, [Part()], UNDECLARED)
    require_order(live, whole, [Part(stores=())], UNDECLARED)
    for before in (live, begun(2, UNDECLARED)):
        with pytest.raises(
            Refused, match=r"backfill of input 'in': found 8 partitions.*no declared linear hashing"
        ):
            require_order(before, whole, [Part()], UNDECLARED)


@pytest.mark.parametrize(
    ("declared", "found"),
    [(UNDECLARED, "no declared linear hashing"), (Declared({"in": 3}, ()), "linear hashing over 3")],
)
def test_an_input_that_grows_without_linear_hashing_is_refused(declared: Declared, found: str) -> None:
    with pytest.raises(Refused, match=found) as refused:
        seen(begun(declared=UNDECLARED), {"in": 4}, declared)
    assert "linear_hashing: {in: 2}" in str(refused.value)


def test_without_state_any_input_may_grow_and_a_repartition_topic_always() -> None:
    stateless = Part(stores=())
    record = seen(PipelineProcessors(), {"in": 2}, UNDECLARED, stateless)
    assert seen(record, {"in": 4}, UNDECLARED, stateless).topics["in"].partitions == 4
    internal = Declared({}, {"in"})
    assert seen(begun(declared=internal), {"in": 4}, internal).topics["in"].partitions == 4


def test_a_topic_that_was_made_anew_with_fewer_partitions_is_refused() -> None:
    with pytest.raises(Refused, match="found 2; expected at least the 4"):
        seen(seen(begun(), {"in": 4}), {"in": 2})


def test_inputs_that_are_read_together_begin_with_equal_counts() -> None:
    both = Part(sources=("in", "other"))
    with pytest.raises(InvalidInput, match="one count for all inputs"):
        seen(PipelineProcessors(), {"in": 2, "other": 4}, Declared({"in": 2, "other": 4}, ()), both)
    unequal = seen(PipelineProcessors(), {"in": 2, "other": 4}, UNDECLARED, both)
    with pytest.raises(Refused, match="3 partitions instead of 2, for 4 processors"):
        seen(unequal, {"in": 3, "other": 4}, LINEAR, both)


def test_more_processors_than_partitions_are_refused() -> None:
    with pytest.raises(Refused, match=r"sub-topology 0: found 4 for 2 partitions of in; .* Expand the partitions"):
        expanded(begun(), [Part()], {"in": 2}, (), 4)
    asked = expanded(begun(), [Part()], {"in": 8}, (), 4)
    assert (asked.expanding, asked.sub_topologies[0].largest, asked.tasks) == ((0,), 4, {0: 2})
    assert expanded(asked, [Part()], {"in": 8}, (), 4) == asked, "asking again changes nothing"
    with pytest.raises(Refused, match="an expansion from 2 to 4 processors under way"):
        expanded(asked, [Part()], {"in": 8}, (), 8)


def test_the_refusal_names_the_inputs_that_have_too_few_partitions() -> None:
    merged = Part(sources=("in", "small", "own"), stores=())
    with pytest.raises(Refused, match="found 8 for 4 partitions of small; expected"):
        expanded(begun(), [merged], {"in": 8, "small": 4, "own": 2}, {"own"}, 8)
    beside = expanded(begun(), [merged], {"in": 8, "small": 1, "own": 2}, {"own"}, 2)
    assert beside == begun(), "nothing is asked for"


def test_processors_do_not_become_fewer_and_must_exist() -> None:
    with pytest.raises(Refused, match="at least the present 2"):
        expanded(begun(), [Part()], {"in": 2}, (), 1)
    with pytest.raises(InvalidInput, match="found 7"):
        expanded(begun(), [Part()], {"in": 8}, (), 4, [7])
    with pytest.raises(InvalidInput, match="no run yet"):
        expanded(PipelineProcessors(), [Part()], {"in": 8}, (), 4)


def test_what_a_new_task_consumes_reads_and_is_split_from() -> None:
    counts = expanded(begun(), [Part()], {"in": 8}, (), 4).sub_topologies[0]
    assert [(new.consumes, new.reads) for new in counts.new(8)] == [((2, 6), (0, 2, 6)), ((3, 7), (1, 3, 7))]
    tasks = new_tasks("app", 0, counts, Placement(2), (COUNTS,), {})
    assert [(str(task.task), str(task.parent)) for task in tasks] == [("0_2", "0_0"), ("0_3", "0_1")]


def new_task(number: int) -> NewTask:
    counts = expanded(begun(), [Part()], {"in": 8}, (), 4).sub_topologies[0]
    return NewTask("app", TaskId(0, number), counts, Placement(counts.initial), (COUNTS, WINDOWS), {})


@pytest.mark.parametrize("store", [COUNTS, WINDOWS])
def test_a_new_processor_is_given_its_keys_and_no_others(store: StoreDefinition) -> None:
    hashing, suffix = LinearHashing(2), b"" if store is COUNTS else bytes(12)
    mine = [key for key in KEYS if hashing.partition(key, 2) == 0]
    wanted = new_task(2).wanted(store, [key + suffix for key in mine])
    assert wanted == [hashing.partition(key, 4) == 2 for key in mine]
    assert 0 < sum(wanted) < len(mine)


def test_state_that_is_not_placed_by_linear_hashing_is_refused_by_its_key() -> None:
    stray = next(key for key in KEYS if LinearHashing(2).partition(key, 2) == 1)
    with pytest.raises(UnsafeState, match=f"key 0x{stray.hex()}"):
        new_task(2).wanted(COUNTS, [stray])


GROWN = GrownTopic("in", initial=3, partitions=5, processors=3)


def test_a_record_is_where_its_key_belongs_or_belonged() -> None:
    hashing = LinearHashing(3)
    GROWN.check([(hashing.partition(key, n), 7, key) for n in (3, 4, 5) for key in KEYS])
    GROWN.check([(0, 7, None)])


def test_a_record_placed_by_murmur2_modulo_is_refused_by_its_key() -> None:
    wrong = next(
        k for k in KEYS if Murmur2().partition(k, 5) not in {LinearHashing(3).partition(k, n) for n in (3, 5)}
    )
    with pytest.raises(UnsafeState, match=f"key 0x{wrong.hex()}.*another partitioner"):
        GROWN.check([(Murmur2().partition(key, 5), 0, key) for key in (*KEYS[:0], wrong)])


def late_key() -> bytes:
    """A key of partition 0 that is now in partition 3."""
    return next(
        key for key in KEYS if (LinearHashing(3).partition(key, 3), LinearHashing(3).partition(key, 5)) == (0, 3)
    )


def test_a_record_of_a_producer_that_learnt_of_the_growth_too_late_is_refused() -> None:
    settled = GrownTopic("in", 3, 5, 3, settled={0: 10})
    settled.check([(0, 9, late_key())])
    with pytest.raises(UnsafeState, match="did not know the growth of the topic in time"):
        settled.check([(0, 10, late_key())])


def test_a_record_of_another_processor_is_refused_even_before_producers_have_settled() -> None:
    with pytest.raises(UnsafeState, match="did not know the growth"):
        GrownTopic("in", 3, 5, processors=4).check([(0, 0, late_key())])


def test_the_fence_is_behind_the_last_record_whose_key_has_moved_on() -> None:
    stays = next(key for key in KEYS if LinearHashing(3).partition(key, 5) == 0)
    assert GROWN.fence(0, [(4, late_key()), (6, late_key()), (9, stays), (11, None)]) == 7
    assert GROWN.fence(0, [(4, stays)]) == 0
    assert (GROWN.until(0, 20), GrownTopic("in", 3, 5, 3, settled={0: 10}).until(0, 20)) == (20, 10)
