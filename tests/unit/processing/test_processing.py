"""A pipeline that this project runs: its file, internal topics and levels, and which thread runs which task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.processing import ClientRecord, Processing
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.adjustments import thread_added, thread_removed
from kafka_rescale.core.processing.internal_topics import changelog_configs, internal_topics, levels
from kafka_rescale.core.processing.rebalance import Member, Rebalance
from kafka_rescale.operations.application.load import application_files, load_pipeline_application
from kafka_rescale.operations.processing.prepare import Prepared

from tests.support.words_pipeline import words, write_pipeline

DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline": None}, "no field `pipeline`"),
        ({"state.dir": None}, "no field `state.dir`"),
        ({"state.dir": "state"}, "expected an absolute path or a URI"),
        ({"state.dir": "s3://u:p@bucket/x"}, "an address with a password"),
        ({"pipeline": "words"}, "a text that matches"),
        ({"num.stream.threads": 0}, "1 or more"),
        ({"num.stream.thread": 3}, "Did you mean `num.stream.threads`?"),
        ({"partitions": 8}, "the unknown field `partitions`"),
        ({"cache.max.bytes.buffering": 0}, "the unknown field `cache.max.bytes.buffering`"),
        ({"linear_hashing": {"lines": 0}}, "1 or more"),
    ],
)
def test_a_mistake_in_the_file_is_one_message_with_its_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    file = write_pipeline(tmp_path, **changes)
    with pytest.raises(InvalidInput) as refused:
        load_pipeline_application(file)
    assert message in str(refused.value)
    assert f"{file}:" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_sound_file_is_read_under_the_names_of_kafka_streams(tmp_path: Path) -> None:
    application = load_pipeline_application(write_pipeline(tmp_path))
    assert (application.num_stream_threads, application.state_dir) == (2, str(tmp_path / "state"))
    assert application.schedule is None


def test_files_of_both_runtimes_lie_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_pipeline(tmp_path)
    (tmp_path / "other.yaml").write_text("application_id: other")
    (tmp_path / "broken.yaml").write_text("runtime: [")
    assert [file.name for file in application_files(SPARK)] == ["words.yaml"]
    assert [file.name for file in application_files()] == ["broken.yaml", "other.yaml"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tests.support.words_pipeline:missing", "has no attribute"),
        ("no_such_module:pipeline", "No module named"),
        ("tests.support.words_pipeline:NOT_A_PIPELINE", "found a str"),
    ],
)
def test_what_is_no_pipeline_is_refused_by_its_name(name: str, found: str) -> None:
    with pytest.raises(InvalidInput, match=found) as refused:
        pipeline_named(name)
    assert name in str(refused.value)


def test_a_function_that_returns_a_pipeline_will_do() -> None:
    assert pipeline_named("tests.support.words_pipeline:words").describe() == words().describe()


def test_internal_topics_are_those_that_kafka_streams_would_create() -> None:
    pipeline = words()
    topics = internal_topics(
        "app", pipeline.topology, pipeline.sub_topologies(), {"by-word-repartition": 5}, {0: 3, 1: 2}
    )
    assert [(t.name, t.partitions, t.configs["cleanup.policy"]) for t in topics] == [
        ("app-by-word-repartition", 5, "delete"),
        ("app-counts-changelog", 2, "compact"),
    ]
    assert topics[0].configs["retention.ms"] == "-1"
    assert topics[0].configs["segment.bytes"] == "52428800"


@pytest.mark.parametrize(
    ("kind", "retention_ms", "policy", "topic_retention_ms"),
    [
        ("timestamped-key-value", None, "compact", None),
        ("timestamped-window", DAY_MS, "compact,delete", str(2 * DAY_MS)),
        ("session", 1000, "compact,delete", str(DAY_MS + 1000)),
        ("join-window", 1000, "delete", str(DAY_MS + 1000)),
        ("outer-join", 1000, "compact", None),
    ],
)
def test_a_changelog_has_the_configs_of_its_store(
    kind: str, retention_ms: int | None, policy: str, topic_retention_ms: str | None
) -> None:
    configs = changelog_configs(StoreDefinition("store", kind, retention_ms))
    assert configs["cleanup.policy"] == policy
    assert configs.get("retention.ms") == topic_retention_ms


def test_what_feeds_others_comes_before_them() -> None:
    assert levels(words().topology) == ((0,), (1,))


TASKS = {0: 4, 1: 4}


def run(before: Processing | None, name: str, threads: int = 2, tasks: dict[int, int] | None = None) -> Processing:
    counts = TASKS if tasks is None else tasks
    every = {TaskId(sub_topology, p): 0 for sub_topology, count in counts.items() for p in range(count)}
    return Rebalance(name, 0, Tasks(every), [Member("app", threads)]).of(before)


def the_client(processing: Processing) -> ClientRecord:
    return processing.the_client(None)


def test_every_task_has_one_thread_and_every_level_is_spread() -> None:
    first = run(None, "run-1")
    assert first.state is the_client(first).state is State.RUNNING
    assert first.running == ("app-StreamThread-1", "app-StreamThread-2")
    for level in (0, 1):
        shares = [first.tasks_of(thread, [level]) for thread in first.running]
        assert [len(share) for share in shares] == [2, 2]
        assert {t for share in shares for t in share} == {TaskId(level, p) for p in range(4)}


def test_tasks_stay_with_their_threads_from_run_to_run() -> None:
    first = run(None, "run-1")
    assert run(first, "run-2").threads == first.threads
    grown = run(first, "run-3", tasks={0: 4, 1: 8})
    for before, after in zip(first.threads, grown.threads, strict=True):
        assert set(before.tasks) <= set(after.tasks)


def test_an_added_thread_has_its_part_in_the_next_run_and_a_removed_one_none() -> None:
    first = run(None, "run-1")
    added, name = thread_added(first, None)
    second = run(added, "run-2")
    assert name == "app-StreamThread-3"
    assert name is not None
    assert name in second.running
    assert len(second.tasks_of(name, [0, 1])) in {2, 3}
    asked, gone = thread_removed(second, None)
    assert [t.state for t in asked.threads if t.name == gone] == [ThreadState.PENDING_SHUTDOWN]
    third = run(asked, "run-3")
    assert gone not in third.running
    assert sum(len(third.tasks_of(thread, [0, 1])) for thread in third.running) == 8


def test_another_number_of_threads_in_the_file_starts_the_client_anew() -> None:
    first = run(None, "run-1")
    added, _ = thread_added(first, None)
    assert len(run(added, "run-2", threads=2).running) == 3
    assert len(run(added, "run-2", threads=1).running) == 1


def test_without_threads_nobody_runs_anything_and_the_client_stays_running() -> None:
    first = run(None, "run-1", threads=1)
    removed, _ = thread_removed(first, None)
    second = run(removed, "run-2", threads=1)
    assert (second.running, second.state) == ((), State.RUNNING)


def test_the_record_survives_json() -> None:
    first = run(None, "run-1")
    assert Processing.model_validate_json(first.model_dump_json()) == first


def test_the_log_of_a_run_says_what_became_of_the_threads_that_were_asked_for() -> None:
    first = Rebalance("run", 0, Tasks({TaskId(0, 0): 0}), [Member("words", 1)]).of(None)
    assert str(Prepared(first, ("words-counts-changelog",), adjustments=("added words-StreamThread-3",))) == (
        "created words-counts-changelog; added words-StreamThread-3; words-StreamThread-1: 0_0"
    )
    assert str(Prepared(first, (), adjustments=("no thread added: words is ERROR",))) == (
        "no thread added: words is ERROR; words-StreamThread-1: 0_0"
    )
