"""Watches which processes are started: by this interpreter, or below another process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil  # type: ignore[import-untyped]
from kafka_rescale.kafka.client.waiting import now_ms

LOOK_SECONDS = 0.05
"""An interpreter or a JVM lives longer than this. Looking more often would be a load of its own."""

STARTS = {"subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system"}


@dataclass(frozen=True)
class Event:
    """Something that happened.

    :param at_ms: wall clock.
    :param kind: ``journal``, ``process`` (started by the cutover) or ``driver`` (a new process of catch_up's).
    """

    at_ms: int
    kind: str
    what: str


@contextmanager
def process_starts() -> Iterator[list[Event]]:
    """Collect every process that this interpreter starts, by its audit events."""
    found: list[Event] = []
    active = [True]

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if active and name in STARTS:
            words = arguments[1] if name == "subprocess.Popen" else arguments
            found.append(Event(now_ms(), "process", " ".join(map(str, words))))

    sys.addaudithook(hook)  # the hook stays for the life of the interpreter, and does nothing after this block
    try:
        yield found
    finally:
        active.clear()


@contextmanager
def new_processes(parent: int) -> Iterator[list[Event]]:
    """Collect every process that starts below a process, by looking every few hundredths of a second."""
    found: list[Event] = []
    stop = threading.Event()
    known = {process.pid for process in _children(parent)}

    def look() -> None:
        while not stop.wait(LOOK_SECONDS):
            for process in _children(parent):
                if process.pid not in known:
                    found.append(Event(now_ms(), "driver", _command(process)))
                known.add(process.pid)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield found
    finally:
        stop.set()
        looking.join()


def _children(parent: int) -> Sequence[psutil.Process]:
    try:
        return list(psutil.Process(parent).children(recursive=True))
    except psutil.NoSuchProcess:
        return ()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "a process that has ended"
