"""A task's store behaves like a dictionary in the order of its keys, whatever part of it is in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.task import Entry, StoreDefinition
from kafka_rescale.core.processing import task_state
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.task_state import SavedState
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import TaskStore

KEYS = st.sampled_from([b"", b"a", b"a\x00", b"a\xff", b"b", b"\xff", b"\xff\xff"])
PUT = st.tuples(st.just("put"), KEYS, st.none() | st.binary(max_size=2), st.integers(0, 9))
RANGE = st.tuples(st.just("range"), KEYS, KEYS)
RUN = st.tuples(st.just("run"))


def state_at(position: int) -> SavedState:
    return SavedState(topic="t", topic_id="i", partition=0, position=position, as_of_ms=0)


def nothing(*_: object) -> None:
    """A changelog that drops its records."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(PUT | RANGE | RUN, max_size=25), st.integers(0, 1000))
def test_a_store_over_any_number_of_runs(tmp_path: Path, steps: list[tuple], example: int) -> None:
    files = StateFiles(str(tmp_path / str(abs(hash((example, str(steps)))))), "app/0_0/store")
    headers = (("side", b"left"),)
    logged: list[tuple] = []
    expected: dict[bytes, Entry] = {}
    store, saved, written = TaskStore(lambda *record: logged.append(record)), None, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_state, "LEAST_ROWS", 3)
        patch.setattr(task_state, "MOST_DELTAS", 2)
        for step in steps:
            if step[0] == "put":
                _, key, value, at = step
                store.put(key, value, at, headers)
                written.append((key, value, at, headers))
                expected = {k: e for k, e in expected.items() if k != key}
                expected |= {} if value is None else {key: Entry(value, at)}
            elif step[0] == "range":
                _, first, last = step
                within = [(k, e) for k, e in sorted(expected.items()) if first <= k <= last]
                assert list(store.range(first, last)) == within
            else:
                saved = files.save(store, saved, state_at(len(logged)))
                store = TaskStore(lambda *record: logged.append(record))
                assert files.load(saved, store) == ""
            for key in (b"a", b"b", b"zz"):
                assert store.get(key) == expected.get(key)
    assert logged == written


def test_a_put_within_a_range_changes_nothing_in_it() -> None:
    store = TaskStore(nothing)
    for key in (b"a", b"b", b"c"):
        store.put(key, b"1", 1)
    seen = []
    for key, entry in store.range(b"a", b"c"):
        store.put(b"bb", b"new", 2)
        store.put(b"c", None, 2)
        seen.append((key, entry.value))
    assert seen == [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(str(tmp_path), "app/0_0/store")


def saved_runs(files: StateFiles, count: int) -> Iterator[SavedState]:
    """Runs of a task. Each changes one of a hundred keys."""
    store, saved = TaskStore(nothing), None
    for number in range(100):
        store.restore(b"%03d" % number, b"0", 1)
    for run in range(count):
        store.restore(b"%03d" % run, b"%d" % run, 2)
        saved = files.save(store, saved, state_at(run))
        yield saved


def test_runs_that_change_little_write_little(files: StateFiles) -> None:
    *_, last = saved_runs(files, 4)
    assert [file.rows for file in last.files] == [100, 1, 1, 1]


def test_runs_that_change_little_do_not_leave_a_file_each(
    files: StateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_state, "MOST_DELTAS", 3)
    *_, before = saved_runs(files, 4)
    store = TaskStore(nothing)
    assert files.load(before, store) == ""
    store.put(b"003", None, 5)
    store.put(b"new", b"9", 5)
    saved = files.save(store, before, state_at(4))
    assert [file.rows for file in saved.files] == [100, 4]
    again = TaskStore(nothing)
    assert files.load(saved, again) == ""
    assert [again.get(key) for key in (b"001", b"003", b"new")] == [Entry(b"1", 2), None, Entry(b"9", 5)]
    assert sum(1 for _ in (Path(files.location) / files.owner).glob("delta-*")) == 4, "three of the one before"
    assert max(len(state.files) for state in saved_runs(files, 40)) == 4


def test_only_what_the_two_newest_manifests_name_is_kept(
    files: StateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_state, "LEAST_ROWS", 1)
    monkeypatch.setattr(task_state.SavedState, "needs_base", lambda self, rows: len(self.files) > 2)
    *_, last = saved_runs(files, 9)
    found = sorted(files.found(), key=lambda state: state.position)
    assert [state.position for state in found] == [7, 8]
    assert found[-1] == last
    there = {f.name for f in (Path(files.location) / files.owner).iterdir() if not f.name.startswith("manifest-")}
    assert there == {file.name for state in found for file in state.files}
    store = TaskStore(nothing)
    assert files.load(last, store) == ""
    assert [store.get(b"%03d" % n) for n in (0, 8, 9)] == [Entry(b"0", 2), Entry(b"8", 2), Entry(b"0", 1)]


def test_manifests_of_one_offset_are_not_kept_for_ever(files: StateFiles) -> None:
    """A standby without new records reports again and again that its state is complete."""
    *_, saved = saved_runs(files, 1)
    for as_of_ms in range(1, 9):
        saved = files.save(TaskStore(nothing), saved, saved.model_copy(update={"as_of_ms": as_of_ms}))
    assert sorted(state.as_of_ms for state in files.found()) == [7, 8]
    files.save(TaskStore(nothing), saved, saved.model_copy(update={"as_of_ms": 3}))
    assert sorted(state.as_of_ms for state in files.found()) == [3, 7, 8], "it takes nothing from a newer one"
    assert files.load(saved, TaskStore(nothing)) == ""


@pytest.mark.parametrize(
    ("kind", "key_of"),
    [
        ("timestamped-window", lambda at: b"key" + at.to_bytes(8, "big") + bytes(4)),
        ("session", lambda at: b"key" + at.to_bytes(8, "big") + bytes(8)),
    ],
)
def test_a_base_leaves_out_what_is_gone_by_its_time(kind: str, key_of: Callable[[int], bytes]) -> None:
    store = TaskStore(nothing, Expiry.of(StoreDefinition("s", kind, retention_ms=100)))
    for at in (1000, 900, 899, 5):
        store.put(key_of(at), b"v", 7)
    assert store.all_rows()["key"].to_pylist() == [key_of(900), key_of(1000)]
    assert store.get(key_of(5)) is not None, "the pipeline decides what it still sees"


def test_a_store_without_times_keeps_everything() -> None:
    assert Expiry.of(StoreDefinition("s", "timestamped-key-value", retention_ms=1)) is None
    assert Expiry.of(StoreDefinition("s", "timestamped-window")) is None


def test_a_process_that_was_thought_dead_takes_nothing_from_a_newer_one(files: StateFiles) -> None:
    *_, newer = saved_runs(files, 4)
    zombie = TaskStore(nothing)
    zombie.restore(b"old", b"old", 1)
    files.save(zombie, None, state_at(1))
    assert files.load(newer, TaskStore(nothing)) == ""
    assert max(files.found(), key=lambda state: state.position) == newer


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_damage_is_noticed(files: StateFiles, damage: str) -> None:
    *_, last = saved_runs(files, 2)
    for name in (last.files[0].name, max(n.name for n in _all(files) if n.name.startswith("manifest-"))):
        path = Path(files.location) / files.owner / name
        content = path.read_bytes()
        flipped = bytes([content[0] ^ 1]) + content[1:]
        {
            "flip": lambda: path.write_bytes(flipped),  # noqa: B023
            "cut": lambda: path.write_bytes(content[: len(content) // 2]),  # noqa: B023
            "gone": path.unlink,
        }[damage]()
    assert files.load(last, TaskStore(nothing)) != ""
    assert last not in files.found()


def _all(files: StateFiles) -> list[Path]:
    return list((Path(files.location) / files.owner).iterdir())


def test_a_place_that_arrow_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"state\.dir: found nowhere"):
        StateFiles("nowhere://x", "app/0_0/store").found()
