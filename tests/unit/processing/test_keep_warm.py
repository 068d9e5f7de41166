"""Standbys and warm-ups: how far saved state is behind, what is due, and when a rebalance is triggered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, MovementRecord, Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.replicas import is_due, saved_lag
from kafka_rescale.core.processing.request import KeepWarmRequest
from kafka_rescale.core.processing.task_state import Changelog, SavedState
from kafka_rescale.kafka.processing.changelogs import KnownState
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing import keep_warm
from kafka_rescale.operations.processing.members import members_of
from kafka_rescale.spark.processing import keep_warm as keep_warm_job
from kafka_rescale.spark.processing.standby_task import run_standby, works_due
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import TaskStore

from tests.support.processing.assignments import ids
from tests.support.words_pipeline import write_pipeline

DAY_MS = 24 * 3600 * 1000
LOG = Changelog("app-counts-changelog", "id", 0, 0, 1_000, DAY_MS)
OTHER = Changelog("app-sums-changelog", "id", 0, 0, 500, DAY_MS)


def saved(position: int, log: Changelog = LOG, as_of_ms: int = 0, topic_id: str = "id") -> SavedState:
    return SavedState(topic=log.topic, topic_id=topic_id, partition=0, position=position, as_of_ms=as_of_ms)


def test_the_lag_of_a_clients_state_is_the_sum_over_the_stores_of_the_task() -> None:
    logs = {"counts": LOG, "sums": OTHER}
    assert saved_lag({"counts": [saved(900), saved(400)], "sums": [saved(470, OTHER)]}, logs, 0) == 130
    assert saved_lag({"counts": [saved(900)]}, logs, 0) == 600, "one store has everything to read"
    assert saved_lag({}, logs, 0) is None


@pytest.mark.parametrize(
    ("positions", "lag"),
    [((900, 470, 1_000), 130), ((990, 490, 990), 30), ((999, 499, 1_000), 0), ((990, None, None), 1_510)],
)
def test_the_lag_of_a_task_with_three_stores_is_that_of_all_their_changelogs(
    positions: tuple[int | None, ...], lag: int
) -> None:
    logs = {"counts": LOG, "sums": OTHER, "latest": LOG}
    states = {
        store: [] if at is None else [saved(at, logs[store])] for (store, at) in zip(logs, positions, strict=True)
    }
    assert saved_lag(states, logs, 0) == lag


def test_the_marker_of_the_last_transaction_is_no_lag() -> None:
    assert saved_lag({"counts": [saved(999)]}, {"counts": LOG}, 0) == 0


@pytest.mark.parametrize("useless", [saved(900, topic_id="another"), saved(1_001), saved(900, as_of_ms=-DAY_MS)])
def test_state_that_can_not_be_used_counts_as_none(useless: SavedState) -> None:
    assert saved_lag({"counts": [useless]}, {"counts": LOG}, 0) is None


@pytest.mark.parametrize(
    ("states", "now_ms", "due"),
    [
        ([], 0, True),
        ([saved(900)], 0, True),
        ([saved(999)], 0, False),
        ([saved(1_000)], DAY_MS // 2 - 1, False),
        ([saved(1_000)], DAY_MS // 2, True),
    ],
)
def test_a_standby_is_due_when_there_is_more_to_read_or_its_state_grows_old(
    states: list[SavedState], now_ms: int, due: bool
) -> None:
    assert is_due(states, LOG, now_ms) is due


def test_a_changelog_that_was_never_written_is_not_due() -> None:
    assert not is_due([], Changelog("t", "id", 0, 0, 0, DAY_MS), 0)


def test_a_warm_up_catches_up_where_retention_has_emptied_a_changelog(tmp_path: Path) -> None:
    """Without a manifest, the store would count as a whole changelog behind, and the warm-up would never end."""
    (task,), emptied = ids("0_0"), Changelog("app-windows-changelog", "id", 0, 50_000, 50_000, DAY_MS)
    StateFiles(str(tmp_path), "app").create()
    logs, files = {"windows": emptied}, StateFiles.of(str(tmp_path), "app", task, "windows")
    (work,) = works_due("app", str(tmp_path), [task], {task: logs}, 0)
    part: Any = SimpleNamespace(stores=[StoreDefinition("windows", "timestamped-window", retention_ms=DAY_MS)])
    no_brokers: Any = None
    assert run_standby(no_brokers, work, part).restored == 0
    assert saved_lag({"windows": files.found()}, logs, 0) == 0
    assert works_due("app", str(tmp_path), [task], {task: logs}, 0) == []


def test_a_client_whose_state_can_not_be_read_is_absent_and_stops_nobody(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("east", "west")}
    clients = [{"client.id": name, "state.dir": str(place)} for name, place in places.items()]
    file = write_pipeline(tmp_path, clients=clients, **{"state.dir": None, "num.stream.threads": None})
    (places["west"] / "words" / "1_0").mkdir(parents=True)
    (places["west"] / "words" / "1_0" / "counts").write_text("no directory")
    known = KnownState(Tasks({}, frozenset()), {TaskId(1, 0): {"counts": LOG}}, {1: 1})
    east, west = members_of(load_pipeline_application(file), None, known, 0)
    assert (east.absent, east.lags) == ("", {})
    assert west.absent.startswith(str(places["west"]))
    assert west.lags == {}


def test_nothing_is_made_where_a_client_is_absent(tmp_path: Path) -> None:
    (task,) = ids("0_0")
    assert works_due("app", str(tmp_path / "gone"), [task], {task: {"counts": LOG}}, 0) == []
    assert list(tmp_path.iterdir()) == []
    StateFiles(str(tmp_path / "there"), "app").create()
    assert [w.task for w in works_due("app", str(tmp_path / "there"), [task], {task: {"counts": LOG}}, 0)] == [
        task
    ]


def test_state_that_is_only_confirmed_is_not_written_anew(tmp_path: Path) -> None:
    files, store = StateFiles(str(tmp_path), "app/0_0/counts"), TaskStore(lambda *_: None)
    store.restore(b"k", b"v", 1)
    first = files.save(store, None, saved(10))
    second = files.save(store, first, saved(10, as_of_ms=DAY_MS))
    assert second.files == first.files
    assert {state.as_of_ms for state in files.found()} == {0, DAY_MS}


@pytest.mark.parametrize(
    ("moves", "now_ms", "run_id", "reason"),
    [
        (0, 10**9, "", "Nothing warms up"),
        (2, 659_000, "", "2 tasks warm up; a rebalance is due in 1 s."),
        (2, 660_000, "probing__660000", "600 s are over"),
        (2, 1_259_000, "probing__660000", "600 s are over"),
        pytest.param(2, 1_260_000, "probing__1260000", "600 s are over", id="the first one has failed"),
    ],
)
def test_a_rebalance_is_triggered_as_long_as_something_warms_up(
    moves: int, now_ms: int, run_id: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    movement = MovementRecord(task="0_0", role="active", runs_on="a", goes_to="b", is_warming_up=True)
    processing = Processing(at_ms=60_000, movements=(movement,) * moves, clients=(ClientRecord(client_id="a"),))

    class Control:
        """A control topic that can only be read."""

        def __init__(self, *_: Any) -> None:
            pass

        def read(self) -> ControlState:
            return ControlState(processing=processing)

    monkeypatch.setattr(keep_warm, "ControlTopic", Control)
    monkeypatch.setattr(keep_warm, "now_ms", lambda: now_ms)
    connection: Any = None
    found = keep_warm.probe(load_pipeline_application(write_pipeline(tmp_path)), connection)
    assert found.run_id == run_id
    assert reason in found.reason


class Read:
    """A control topic with the results of jobs. Jobs that are at work give a sign of life before each look."""

    def __init__(self, states: Mapping[str, str], at_work: Collection[str]) -> None:
        self._states, self._at_work, self._looks = states, at_work, itertools.count()

    def follow(self) -> AbstractContextManager[Read]:
        return nullcontext(self)

    def heard(self, job: str) -> tuple[int, None]:
        return (next(self._looks) if job.removeprefix("keep_warm/") in self._at_work else 0), None

    def read(self) -> ControlState:
        clients = tuple(ClientRecord(client_id=name, standbys=("0_0",)) for name in "ab")
        results = {
            f"keep_warm/{name}": JobResult(
                job=f"keep_warm/{name}",
                run="keep_warm_words/1",
                attempt=1,
                state=state,
            )
            for name, state in self._states.items()
        }
        return ControlState(processing=Processing(clients=clients), results=results)


@pytest.mark.parametrize(
    ("states", "at_work", "due"),
    [
        ({}, "", ["a", "b"]),
        ({"a": "done", "b": "failed"}, "", ["a", "b"]),
        ({"a": "running", "b": "done"}, "a", ["b"]),
        ({"a": "running", "b": "running"}, "ab", []),
        pytest.param({"a": "running", "b": "done"}, "", ["a", "b"], id="the job was killed"),
        pytest.param({"a": "running", "b": "running"}, "a", ["b"], id="one of two was killed"),
    ],
)
def test_a_client_whose_job_is_at_work_is_left_out_and_the_others_go_on(
    states: Mapping[str, str], at_work: str, due: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = Read(states, at_work)
    monkeypatch.setattr(keep_warm, "ControlTopic", lambda *_: control)
    monkeypatch.setattr(keep_warm, "ClusterAdmin", lambda *_: None)
    monkeypatch.setattr(keep_warm, "known_state", lambda *_: KnownState(Tasks({}, frozenset()), {}, {}))
    monkeypatch.setattr(keep_warm, "works_due", lambda *_: ["something to read"])
    monkeypatch.setattr(keep_warm, "PAUSE_SECONDS", 0.001)
    clients = [{"client.id": name, "state.dir": f"/{name}"} for name in "ab"]
    file = write_pipeline(tmp_path, clients=clients, **{"state.dir": None})
    connection: Any = None
    found = keep_warm.due_clients(load_pipeline_application(file), connection, silent_seconds=0.02)
    assert found == due


def test_the_job_gives_signs_of_life_while_it_restores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing tells a restore of hours from a job that was killed."""
    written: list[tuple[str, str]] = []

    class Beating:
        """A job whose standbys take two beats."""

        arguments = SimpleNamespace(
            request=KeepWarmRequest(pipeline="p", state_dir="/a", client_id="a").model_dump_json()
        )
        connection = None

        def put(self, state: str) -> None:
            written.append((state, "result"))

        def sign(self) -> None:
            written.append(("running", "sign"))

        def on_partitions(self, _items: Any, _action: Any, beat: Callable[[], None]) -> list[Any]:
            beat()
            beat()
            return []

        def finish(self, **_: Any) -> None:
            written.append(("done", "result"))

    monkeypatch.setattr(keep_warm_job, "_works", lambda *_: [])
    job: Any = Beating()
    keep_warm_job.keep_warm(job)
    assert [state for state, _ in written] == ["running", "running", "running", "done"]
    assert [what for _, what in written] == ["result", "sign", "sign", "result"]
