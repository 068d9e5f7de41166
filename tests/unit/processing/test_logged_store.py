"""Restores that take long: files become too old meanwhile, and a killed one goes on from what it has saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.processing.task_state import Changelog, SavedState
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.processing import logged_store
from kafka_rescale.spark.processing.logged_store import LoggedStore, Restored
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import TaskStore

HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000
LOG = Changelog("a-counts-changelog", "id-1", 0, begin=0, end=8, tombstone_ms=HOUR_MS)
RECORDS = [(0, b"kept", b"1"), (4, b"deleted", None), (5, b"new", b"2")]
"""What the changelog holds. The files stand for offset 3, and have ``deleted`` with a value."""


@dataclass(frozen=True)
class Record:
    at: int
    name: bytes
    content: bytes | None

    def key(self) -> bytes:
        return self.name

    def value(self) -> bytes | None:
        return self.content

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at

    def offset(self) -> int:
        return self.at


class Reading:
    """A changelog whose first reading takes some time, in which the log cleaner removes the old deletion."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.starts = seconds, 0.0, list[int]()

    def read(self, _: Any, topic: str, ranges: Mapping[int, tuple[int, int]], **__: Any) -> Iterator[Record]:
        start, _end = ranges[0]
        is_cleaned = self.seconds * 1000 >= HOUR_MS
        self.starts.append(start)
        self.now += self.seconds
        for at, name, content in RECORDS:
            if at >= start and not (is_cleaned and content is None):
                yield Record(at, name, content)


@pytest.mark.parametrize(
    ("seconds", "starts", "restored"),
    [(60.0, [3], Restored(2, is_full=False)), (3_600.0, [3, 0], Restored(3, is_full=True))],
)
def test_files_that_became_too_old_while_the_rest_was_read_are_left_out(
    seconds: float, starts: list[int], restored: Restored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, before = StateFiles(str(tmp_path), "app/0_0/counts"), TaskStore(lambda *_: None)
    before.restore(b"kept", b"1", 1)
    before.restore(b"deleted", b"1", 1)
    saved = SavedState(topic=LOG.topic, topic_id=LOG.topic_id, partition=0, position=3, as_of_ms=NOW_MS - 1_000)
    files.save(before, None, saved)
    reading = Reading(seconds)
    monkeypatch.setattr(logged_store, "read_ranges", reading.read)
    monkeypatch.setattr(logged_store, "monotonic", lambda: reading.now)
    connection = KafkaConnection({"bootstrap.servers": "unused:1"})
    found = LoggedStore(connection, LOG, files, None, lambda: NOW_MS)
    assert found.restore() == restored
    assert reading.starts == starts
    assert found.store.get(b"deleted") is None, "a deleted key lives on"
    assert {k: found.store.get(k).value for k in (b"kept", b"new")} == {b"kept": b"1", b"new": b"2"}  # type: ignore[union-attr]


class Killed(BaseException):
    """Stands for the end of the process."""


class LongReading:
    """A changelog of ten records, each of which takes half a minute to read.

    :param ends_at: the offset at which the process is killed.
    """

    def __init__(self, ends_at: int) -> None:
        self.ends_at, self.now, self.starts = ends_at, 0.0, list[int]()

    def read(self, _: Any, topic: str, ranges: Mapping[int, tuple[int, int]], **__: Any) -> Iterator[Record]:
        start, end = ranges[0]
        self.starts.append(start)
        for at in range(start, end):
            if at == self.ends_at:
                raise Killed
            self.now += 30.0
            yield Record(at, b"%d" % (at % 7), b"%d" % at)


def test_a_restore_that_is_killed_goes_on_from_what_it_has_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, files = replace(LOG, end=10), StateFiles(str(tmp_path), "app/0_0/counts")
    connection = KafkaConnection({"bootstrap.servers": "unused:1"})
    monkeypatch.setattr(logged_store, "SIGN_RECORDS", 1)

    def restored(ends_at: int, at_ms: int) -> tuple[LoggedStore, list[int], Restored | None]:
        reading = LongReading(ends_at)
        monkeypatch.setattr(logged_store, "read_ranges", reading.read)
        monkeypatch.setattr(logged_store, "monotonic", lambda: reading.now)
        found = LoggedStore(connection, log, files, None, lambda: at_ms)
        try:
            return found, reading.starts, found.restore()
        except Killed:
            return found, reading.starts, None

    assert restored(5, NOW_MS)[1:] == ([0], None)
    assert restored(9, NOW_MS + 1_000)[1:] == ([4], None)
    known = max(files.found(), key=lambda saved: saved.position)
    assert (known.position, known.as_of_ms) == (8, NOW_MS), "deletions count from the begin of the first reading"
    store, starts, done = restored(99, NOW_MS + 2_000)
    assert (starts, done) == ([8], Restored(2, is_full=False))
    found = {name: entry.value for name, entry in store.store.range(b"0", b"9")}
    assert found == {b"0": b"7", b"1": b"8", b"2": b"9", **{b"%d" % n: b"%d" % n for n in (3, 4, 5, 6)}}
    store.save(anew=True)
    known = max(files.found(), key=lambda saved: saved.position)
    assert (known.position, known.as_of_ms) == (10, NOW_MS + 2_000)


def test_what_was_saved_of_a_long_restore_is_left_out_once_it_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = LongReading(5)
    monkeypatch.setattr(logged_store, "SIGN_RECORDS", 1)
    monkeypatch.setattr(logged_store, "read_ranges", reading.read)
    monkeypatch.setattr(logged_store, "monotonic", lambda: reading.now)
    connection, files = KafkaConnection({"bootstrap.servers": "unused:1"}), StateFiles(str(tmp_path), "app/0_0/c")
    for at_ms in (NOW_MS, NOW_MS + HOUR_MS):
        with pytest.raises(Killed):
            LoggedStore(connection, replace(LOG, end=10), files, None, lambda at=at_ms: at).restore()
    assert reading.starts == [0, 0]
