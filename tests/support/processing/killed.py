"""Runs of a small pipeline in a process that dies or stops at a line that is chosen beforehand."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import kafka_rescale
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Emitted, Record, StoreView, TaskProcessor
from kafka_rescale.spark.processing.run import run_task

from testbed.processes import wait_until
from tests.support.processing.counted import SMALL, Counted
from tests.support.processing.counting_pipeline import SINK

PACKAGE = str(Path(kafka_rescale.__file__).parent)
FENCED = 3
SECONDS = 120

processes = multiprocessing.get_context("forkserver")
# The fork server has imported everything and has no threads of a client, so that each fork takes milliseconds.
processes.set_forkserver_preload(["tests.support.processing.killed", "tests.support.processing.inline_jobs"])


def started(target: Callable[..., None], *arguments: object) -> Any:
    """Start a process. It is a daemon, so it ends with the test."""
    process = processes.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def lines_of_a_run(counted: Counted) -> int:
    """Let a process make one whole run, and return how many lines of the package it executed."""
    return lines_of(counted.run)


def lines_of(call: Callable[[], object]) -> int:
    """Let a process make a call, and return how many lines of the package it executed."""
    receiver, sender = processes.Pipe(duplex=False)
    process = started(_count, call, sender)
    lines = int(receiver.recv())
    process.join(SECONDS)
    return lines


def killed_run(counted: Counted, seed: int, lines: int) -> bool:
    """Let a process run until it is killed at a line that the seed chooses. Return whether it was killed.

    :param lines: lines of a whole run. The process dies at one of them or a moment later, perhaps within a call of
        the client.
    """
    return killed_call(counted.run, seed, lines)


def killed_call(call: Callable[[], object], seed: int, lines: int) -> bool:
    """Let a process make a call until it is killed at one of so many lines. Return whether it was killed."""
    chance = random.Random(seed)
    process = started(_call_until, call, chance.randrange(lines), chance.choice([0.0, chance.random() / 20]))
    process.join(SECONDS)
    assert process.exitcode in {0, -signal.SIGKILL}, process.exitcode
    return process.exitcode != 0


def _count(call: Callable[[], object], sender: Any) -> None:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    _trace(step)
    call()
    sys.settrace(None)
    sender.send(count)


def _call_until(call: Callable[[], object], last: int, delay: float) -> None:
    left = last

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            _kill_in(delay)

    _trace(step)
    call()


def _kill_in(seconds: float) -> None:
    if not seconds:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


def _trace(step: Callable[[], None]) -> None:
    """Call ``step`` at every line of the package, in this thread and in the threads that it starts."""

    def line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            step()
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    threading.settrace(call)
    sys.settrace(call)


class Stopping:
    """A sub-topology that stops its process within a transaction, when the log has some of its records."""

    def __init__(self, counted: Counted) -> None:
        self._counted, self._part = counted, counted.part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def processor(self, stores: Mapping[str, StoreView], partition: int, cache: RecordCache | None = None) -> Any:
        return StoppingProcessor(self._part.processor(stores, partition, cache), self._counted)


class StoppingProcessor:
    """Processes one batch, and stops in the next one."""

    def __init__(self, processor: TaskProcessor, counted: Counted) -> None:
        self._processor, self._counted, self._batches = processor, counted, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        self._batches += 1
        if self._batches == 2:
            topic, admin = self._counted.names[SINK], self._counted.admin
            wait_until(
                lambda: sum(admin.end_offsets([topic], read_committed=False)[topic].values()) > 0,
                timeout=SECONDS,
                what="records in the log",
            )
            os.kill(os.getpid(), signal.SIGSTOP)
        return self._processor.process_batch(records)


def run_that_stops(counted: Counted) -> None:
    """Run one task, which stops its process. If it wakes up too late, exit with ``FENCED``."""
    try:
        run_task(counted.connection, counted.work(0, SMALL), Stopping(counted))
    except Fenced:
        sys.exit(FENCED)
