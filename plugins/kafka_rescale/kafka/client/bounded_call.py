"""Calls of the client library that may never return: wait for a limited time, then leave them behind.

``send_offsets_to_transaction`` does not keep to its timeout (librdkafka issues 5456 and 5511), and
``consumer_group_metadata`` has none: see ``docs/decisions/faults.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

from kafka_rescale.core.errors import ClusterOutage

T = TypeVar("T")

SLICE_SECONDS = 0.5
"""The wait is counted in slices, and a suspension of the process counts as one slice. So the wait is not over at
once after a suspension: the process first hears of a newer attempt."""


class StuckCall(ClusterOutage):
    """A call did not return in time. It may still return, and its client must not be used any more."""

    def __init__(self, what: str, call: str, seconds: float) -> None:
        super().__init__(
            what,
            found=f"{call} without an answer for {seconds:.0f} s",
            expected="an answer of the brokers in time",
            remedy="Run again: new clients go on from the last commit.",
        )


def bounded(action: Callable[[], T], seconds: float, what: str, call: str) -> T:
    """Return what a call returns, or raise what it raises.

    :param seconds: how long to wait. After that, the call goes on in its own thread, which ends with the process.
    :param what: the thing concerned, for the error.
    :param call: name of the call, for the error.
    :raises StuckCall: the call did not return in time.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(action())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name=f"bounded {call}", daemon=True).start()
    left = seconds
    while left > 0:
        if wait([answer], timeout=min(left, SLICE_SECONDS)).done:
            return answer.result()
        left -= SLICE_SECONDS
    raise StuckCall(what, call, seconds)
