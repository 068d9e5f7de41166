"""What the log of an output says about its transactions, and what was lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.losing_application import LosingApplication
from benchmarks.losses import Losses
from benchmarks.output_log import OutputLog, parse


def file(partition: int) -> str:
    return f"Dumping /broker/data/orders-counts-{partition}/00000000000000000000.log"


def batch(producer: int, epoch: int = 0, transactional: str = "true", control: str = "false") -> str:
    return (
        f"baseOffset: 4 lastOffset: 5 count: 2 baseSequence: 0 lastSequence: 1 producerId: {producer} "
        f"producerEpoch: {epoch} partitionLeaderEpoch: 0 isTransactional: {transactional} isControl: {control} "
        "deleteHorizonMs: OptionalLong.empty position: 300 CreateTime: 1000 size: 323 magic: 2"
    )


def record(offset: int, key: str) -> str:
    return (
        f"| offset: {offset} CreateTime: {1000 + offset} keySize: 2 valueSize: 1 sequence: 0 headerKeys: [] "
        f"key: {key} payload: v"
    )


def marker(kind: str) -> str:
    return (
        "| offset: 9 CreateTime: 2000 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        f"endTxnMarker: {kind} coordinatorEpoch: 0"
    )


def keys(log: OutputLog) -> tuple[list[str], ...]:
    return tuple([each.key for each in records] for records in (log.committed, log.aborted, log.open))


def test_a_marker_ends_the_transaction_of_its_producer_alone() -> None:
    lines = [file(0), batch(1), record(0, "a"), batch(2), record(1, "b"), batch(1), marker("ABORT")]
    assert keys(parse(lines)) == ([], ["a"], ["b"])
    assert keys(parse([*lines, batch(2), marker("COMMIT")])) == (["b"], ["a"], [])


def test_a_marker_ends_the_transaction_in_its_partition_alone() -> None:
    lines = [file(0), batch(1), record(0, "a"), file(1), batch(1), record(0, "b"), batch(1), marker("COMMIT")]
    assert keys(parse(lines)) == (["b"], [], ["a"])


def test_a_record_without_a_transaction_is_committed() -> None:
    assert keys(parse([file(0), batch(-1, -1, "false"), record(0, "a")])) == (["a"], [], [])


def test_an_aborted_record_is_known_with_its_place_and_its_producer() -> None:
    log = parse([file(3), batch(7, 5), record(4, "a"), record(5, "b"), batch(7, 6), marker("ABORT")])
    first, _ = log.aborted
    assert (first.key, first.partition, first.offset, first.timestamp_ms) == ("a", 3, 4, 1004)
    assert (first.producer, first.epoch) == (7, 5)
    assert log.aborted_transactions == 1


@dataclass
class Stopped(LosingApplication):
    """An application of which only the logs are asked."""

    text: str = ""

    def __post_init__(self) -> None:
        """Connect to nothing."""

    def _logs(self) -> str:
        return self.text


def stopped(text: str = "") -> Stopped:
    return Stopped("", Path(), {}, keeps_state=True, text=text)


def losses(*lines: str, sent: int = 3) -> Losses:
    return Losses.of(stopped(), sent, parse([file(0), *lines]))


COMMITTED = [batch(1), record(0, "0"), record(1, "1"), record(2, "2"), batch(1), marker("COMMIT")]


def test_nothing_is_lost_if_every_key_was_committed() -> None:
    found = losses(*COMMITTED)
    assert (found.lost, found.traced, found.twice, found.aborted) == (0, 0, 0, 0)


@pytest.mark.parametrize(("end", "traced"), [(marker("ABORT"), 1), ("", 0)], ids=["aborted", "never ended"])
def test_a_key_without_a_committed_record_is_lost(end: str, traced: int) -> None:
    found = losses(*COMMITTED, batch(2), record(4, "3"), batch(2), end, sent=5)
    assert (found.lost, found.traced) == (2, traced)


def test_a_key_that_was_written_again_is_not_lost() -> None:
    found = losses(batch(2), record(0, "0"), batch(2), marker("ABORT"), *COMMITTED)
    assert (found.lost, found.aborted) == (0, 1)


def test_a_second_committed_record_of_a_key_is_counted() -> None:
    assert losses(*COMMITTED, *COMMITTED).twice == 3


def test_the_tasks_of_each_corruption_are_counted() -> None:
    corrupted = "Detected the states of tasks [1_0, 1_8] are corrupted. Will close the task as dirty"
    text = f"{corrupted}\nDetected that the thread is being fenced.\n"
    found = Losses.of(stopped(text * 2), 0, OutputLog())
    assert (found.corrupted, found.fenced) == (4, 2)
