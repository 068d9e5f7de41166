"""A function that fails with what the record cache has kept back: which record is found, and what is committed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import STRING, StreamsBuilder
from kafka_rescale.core.pipeline.failure import blame, culprit
from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Record, SubTopology
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.processing.task_producer import RefusedRecord
from kafka_rescale.spark.processing import run
from kafka_rescale.spark.processing.task_records import split_at_first_bad
from kafka_rescale.spark.processing.task_work import TaskWork

from tests.support.processing.pipeline_driver import MemoryStore

COUNT, POISONED = 100, 20
HOLDS_ALL, EVICTS = 10**6, 3_000
ATTEMPTS_AT_MOST = 6


def unpoisoned(value: str) -> str:
    if value.startswith("poison"):
        raise ValueError(value)
    return value


def kept_table() -> SubTopology:
    builder = StreamsBuilder()
    table = builder.table("in", key=STRING, value=STRING, store="kept")
    table.map_values(unpoisoned, value=STRING).to_stream().to("out")
    (part,) = builder.build().sub_topologies()
    return part


def records(*poisoned: int, unreadable: int | None = None) -> list[Record]:
    values = [b"poison" if n in poisoned else b"\xff" if n == unreadable else b"v" * 20 for n in range(COUNT)]
    return [Record("in", 0, n, 1_000 + n, b"k%d" % n, value) for n, value in enumerate(values)]


def refusal(record: Record) -> RefusedRecord:
    error = RefusedRecord("the result", found="refused", expected="taken", remedy="None.")
    blame(error, record)
    return error


class Attempts:
    """Stands for ``StreamTask``: all records are one batch, or one batch each, and nothing is written to brokers.

    :param refused: offset of a record whose result brokers refuse. They name it only if it comes alone.
    :ivar made: for each attempt, whether it worked without the cache, and the record that it knew as the culprit.
    :ivar committed: the offset that was committed last.
    """

    def __init__(self, cache_bytes: int, read: Sequence[Record], refused: int | None = None) -> None:
        self._part, self._cache_bytes, self._read, self._refused = kept_table(), cache_bytes, read, refused
        self.made: list[tuple[str, int | None]] = []
        self.committed = 0

    def __call__(self, *arguments: Any, careful: bool = False) -> Any:
        known = arguments[-1]
        found = culprit(known) if known is not None else None
        self.made.append(("careful" if careful else "cached", found.offset if found else None))
        assert len(self.made) <= ATTEMPTS_AT_MOST, self.made
        return SimpleNamespace(process=lambda: self._process(known, careful=careful), done=lambda _: None)

    def _process(self, known: Exception | None, *, careful: bool) -> None:
        cache = None if careful else RecordCache(self._cache_bytes, {})
        task = self._part.processor({store.name: MemoryStore([]) for store in self._part.stores}, 0, cache)
        work = cast(TaskWork, SimpleNamespace(own_names={}, grown={}, static={}))
        for at in range(0, COUNT, 1 if careful else COUNT):
            fit, wrong = split_at_first_bad(self._read[at : at + (1 if careful else COUNT)], work, known)
            task.process_batch(fit)
            if careful and any(record.offset == self._refused for record in fit):
                raise refusal(self._read[at])
            if wrong is not None:
                task.flush()
                self._commit(at + len(fit))
                raise wrong
        task.flush()
        self._commit(COUNT)

    def _commit(self, offset: int) -> None:
        if self._refused is not None and offset > self._refused:
            raise Rewound(InvalidInput("the batch", found="refused", expected="taken", remedy="None."))
        self.committed = offset


def failed(monkeypatch: pytest.MonkeyPatch, attempts: Attempts) -> int:
    """Run a task that fails; return the offset of the record that the error names."""
    client: Any = SimpleNamespace(abort=lambda: None, forget=lambda: None, close=lambda: None)
    monkeypatch.setattr(run, "StreamTask", attempts)
    monkeypatch.setattr(run, "TaskProducer", lambda *_: client)
    monkeypatch.setattr(run, "copy_consumer", lambda *_, **__: client)
    work: Any = SimpleNamespace(application_id="app", transactional_id="app-0_0", changelog=str)
    with pytest.raises((ValueError, RefusedRecord)) as raised:
        run.run_task(cast(KafkaConnection, None), work, kept_table())
    record = culprit(raised.value)
    assert record is not None
    return record.offset


@pytest.mark.parametrize("cache_bytes", [HOLDS_ALL, EVICTS])
def test_everything_before_a_record_that_fails_out_of_the_cache_is_committed(
    cache_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(cache_bytes, records(POISONED))
    assert failed(monkeypatch, attempts) == POISONED
    assert attempts.committed == POISONED, attempts.made


def test_of_two_records_the_first_one_is_found_although_the_cache_keeps_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = Attempts(EVICTS, records(POISONED, POISONED + 50))
    assert failed(monkeypatch, attempts) == POISONED
    assert attempts.committed == POISONED, attempts.made


def test_a_refused_record_is_found_and_what_comes_before_it_committed_although_a_later_one_failed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = Attempts(HOLDS_ALL, records(unreadable=POISONED + 30), refused=POISONED)
    assert failed(monkeypatch, attempts) == POISONED
    assert attempts.committed == POISONED, attempts.made
