"""A store entry whose key ends with a window belongs to the processor of the key before the window.

If a repartition topic has placed its records by whole keys, the whole key decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processors import ProcessorCounts
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.pipeline import (
    LONG,
    STRING,
    JoinWindows,
    Pipeline,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
)
from kafka_rescale.core.pipeline.task import Record, SubTopology, TaskProcessor
from kafka_rescale.core.processing.state_copies import NewTask, owners
from kafka_rescale.core.processing.static_topic import Placement

from tests.support.processing.pipeline_driver import MemoryStore, PipelineDriver
from tests.support.processing.pipeline_programs import left, right, seconds, windowed_tables
from tests.support.words_pipeline import write_pipeline

KEYS = [b"<%d>" % number for number in range(40)]
KEY = re.compile(rb"<\d+>")
NEAR = TimeWindows(seconds(20), grace=seconds(30))


def kept_windowed_tables() -> Pipeline:
    """A pipeline with every store of windowed keys.

    Some are behind repartition topics that place by whole keys.
    """
    builder = StreamsBuilder()
    windowed_tables(builder)
    one = left(builder).group_by_key().windowed_by(NEAR).count(store="one")
    two = right(builder).group_by_key().windowed_by(NEAR).count(store="two")
    visits = left(builder).group_by_key().windowed_by(SessionWindows(seconds(5))).count(store="visits")
    visits.filter(lambda k, n: n > 0, store="kept-visits")
    one.filter(lambda k, n: n > 0, store="filtered").map_values(str, store="mapped", value=STRING)
    one.outer_join(two, lambda m, n: f"{m}{n}", store="joined", value=STRING)
    updates = one.to_stream()
    updates.filter(lambda k, n: n > 0).group_by_key().count(store="updates")
    updates.group_by_key().windowed_by(NEAR).count(store="windows-of-windows").filter(lambda k, n: 1, store="both")
    near = JoinWindows.of(seconds(5))
    updates.outer_join(two.to_stream(), lambda m, n: f"{m}{n}", near, store="pairs", name="pairing").to(
        "pairs", value=STRING
    )
    updates.repartition(name="whole").group_by_key().count(store="by-whole-key")
    rekeyed = updates.select_key(lambda k, n: k, key=one.key).group_by_key(name="new")
    rekeyed.count(store="by-new-key")
    return builder.build()


def kept() -> dict[str, tuple[SubTopology, Sequence[bytes]]]:
    """All keys that each store has ever had, with the store's sub-topology."""
    pipeline, found = kept_windowed_tables(), {}
    driver = PipelineDriver(pipeline)
    for key in KEYS:
        for topic in ("left", "right", "left") if key != KEYS[0] else ("right",):
            driver.pipe(topic, key, b"v", 50_000)
    for part in pipeline.sub_topologies():
        for store in part.stores:
            found[store.name] = part, list(dict.fromkeys(w.key or b"" for w in driver.changelog(store.name)))
    return found


KEPT = kept()


@pytest.mark.parametrize(("initial", "processors"), [(1, 2), (2, 2), (2, 4)])
@pytest.mark.parametrize("name", KEPT)
def test_entries_belong_to_the_processor_that_their_records_were_placed_by(
    name: str, initial: int, processors: int
) -> None:
    part, raw = KEPT[name]
    assert raw, "the program has put something"
    store = next(store for store in part.stores if store.name == name)
    placed_by = raw if name in {"by-whole-key", "by-new-key"} else [KEY.findall(key)[0] for key in raw]
    placed = LinearHashing(initial).partition_batch(placed_by, processors)
    assert owners(store, raw, Placement(initial), processors) == placed


def odd_counts() -> Pipeline:
    builder = StreamsBuilder()
    counts = left(builder).group_by_key().windowed_by(NEAR).count(store="counts")
    counts.filter(lambda key, n: n % 2 == 1, store="odd").to_stream().to("out")
    return builder.build()


def grown(part: SubTopology, stores: dict[str, MemoryStore]) -> dict[str, MemoryStore]:
    """Hand over what belongs to a second processor, as the copy and the old task do.

    Return the new processor's stores.
    """
    task = NewTask(
        "app", TaskId(0, 1), ProcessorCounts(initial=1, count=1, expanding_to=2), Placement(1), part.stores, {}
    )
    given = {name: MemoryStore([]) for name in stores}
    for store in part.stores:
        keys = list(stores[store.name].entries)
        for key, is_wanted in zip(keys, task.wanted(store, keys), strict=True):
            if is_wanted:
                given[store.name].entries[key] = stores[store.name].entries[key]
        for key, owner in zip(keys, owners(store, keys, Placement(1), 2), strict=True):
            if owner != 0:
                stores[store.name].put(key, None, 0)
    return given


def piped(task: TaskProcessor, keys: Sequence[bytes]) -> dict[bytes, object]:
    return {key: task.process(Record("left", 0, 0, 6_000, key, b"v")) for key in keys}


def test_a_kept_filter_of_a_windowed_table_goes_on_after_a_growth_as_if_there_had_been_none() -> None:
    part = odd_counts().sub_topologies()[0]
    stores = {store.name: MemoryStore([]) for store in part.stores}
    task = part.processor(stores, 0)
    piped(task, KEYS)
    second = grown(part, stores)
    found: dict[bytes, object] = {}
    for partition, views in enumerate((stores, second)):
        task = part.processor(views, partition)
        found |= piped(task, [key for key in KEYS if LinearHashing(1).partition(key, 2) == partition])
    never_grown = part.processor({store.name: MemoryStore([]) for store in part.stores}, 0)
    piped(never_grown, KEYS)
    assert found == piped(never_grown, KEYS)
    assert all(found.values()), "every key has a tombstone"


def test_a_kept_filter_of_a_windowed_table_can_be_expanded_from_more_than_one_processor() -> None:
    odd = next(store for store in odd_counts().sub_topologies()[0].stores if store.name == "odd")
    mine = [key for key in KEYS if LinearHashing(2).partition(key, 2) == 0]
    task = NewTask(
        "app", TaskId(0, 2), ProcessorCounts(initial=2, count=2, expanding_to=3), Placement(2), (odd,), {}
    )
    wanted = task.wanted(odd, [key + LONG.encode(40_000) for key in mine])
    assert wanted == [LinearHashing(2).partition(key, 3) == 2 for key in mine]


def test_describe_says_that_keys_end_with_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_pipeline(tmp_path, pipeline=f"{__name__}:odd_counts")
    assert main(["describe", str(file), "--json"]) == PASSED
    roles = {topic["topic"]: topic["role"] for topic in json.loads(capsys.readouterr().out)["topics"]}
    assert roles["words-odd-changelog"] == "changelog, timestamped-key-value, keys end with 8 bytes of windows"
    assert roles["words-counts-changelog"] == "changelog, timestamped-window"
