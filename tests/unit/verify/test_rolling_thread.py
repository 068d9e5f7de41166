"""The thread that compares beside the copy goes on, whatever a round ends with, and however far the copy is."""

from __future__ import annotations

from itertools import pairwise
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, UnsafeState
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.kafka.verify import rolling
from kafka_rescale.kafka.verify.rolling import AHEAD_RECORDS, RollingComparison

from tests.support.situations import situation
from tests.support.verify.proofs import fences_of

WHY = {"found": "one thing", "expected": "another", "remedy": "Run again."}


@pytest.mark.parametrize(
    "failure",
    [ClusterOutage("topic", **WHY), UnsafeState("topic", **WHY), RuntimeError("can't start new thread")],
    ids=lambda failure: type(failure).__name__,
)
def test_the_next_round_comes(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "PAUSE_SECONDS", 0.01)
    nothing: Any = SimpleNamespace(connection=None, plan=None)
    comparison, again = RollingComparison(nothing, nothing), Event()
    rounds = iter([failure])

    def next_round() -> None:
        if (found := next(rounds, None)) is not None:
            raise found
        again.set()

    monkeypatch.setattr(comparison, "_next", next_round)
    comparison.start()
    assert again.wait(60)
    comparison.end()


JOURNAL = Journal(plan=situation().plan)


class FastCopy:
    """A copy that goes on while a stretch is compared. That takes until some fences were read meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        self.step, self.fences, self.wanted = step, 0, 5
        self.stretches: list[tuple[int, int]] = []
        self.lost_id = ""
        self._read = Event()
        monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.01)
        monkeypatch.setattr(rolling, "read_fences", self.read)
        monkeypatch.setattr(rolling, "compare_stretch", self.compare)
        monkeypatch.setattr(rolling, "compared_topics", lambda *_: {})
        monkeypatch.setattr(rolling, "ClusterAdmin", lambda _: None)
        monkeypatch.setattr(rolling, "green_now", self.topics)

    def read(self, *_: object) -> Fences:
        known, at = fences_of(JOURNAL), self.fences * self.step
        self.fences += 1
        if self.fences >= self.wanted:
            self._read.set()
        topic = next(iter(known.fence))
        return known.model_copy(update={"fence": {**known.fence, topic: {**known.fence[topic], 0: at}}})

    def topics(self, *_: object) -> Any:
        known = fences_of(JOURNAL)
        return {topic: self.lost_id or of for topic, of in known.green_topics.items()}, known.green_begins, {}

    def compare(self, _: object, __: object, stretch: Any, ___: object) -> tuple[()]:
        assert self._read.wait(60)
        before, now = (next(iter(f.fence.values()))[0] for f in (stretch.before, stretch.now))
        self.stretches.append((before, now))
        return ()


def comparison() -> RollingComparison:
    control: Any = SimpleNamespace(connection=None, read=lambda: ControlState(journal=JOURNAL))
    return RollingComparison(control, JOURNAL)


def test_what_is_copied_meanwhile_is_divided_into_stretches_that_join(monkeypatch: pytest.MonkeyPatch) -> None:
    copy, beside = FastCopy(monkeypatch, AHEAD_RECORDS // 2), comparison()
    for _ in range(4):
        beside._next()
    assert copy.stretches[0] == (0, 0)
    assert all(one[1] == other[0] for one, other in pairwise(copy.stretches))
    # Fences are kept only if enough was copied between them.
    assert {end - begin for begin, end in copy.stretches[1:3]} == {AHEAD_RECORDS}


def test_fences_that_were_read_ahead_do_not_count_if_green_was_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    copy, beside = FastCopy(monkeypatch, AHEAD_RECORDS), comparison()
    beside._next()
    assert len(beside._ahead) >= 3
    copy.lost_id, newest = "another id", copy.fences
    beside._next()
    assert copy.stretches[-1] == (0, newest * AHEAD_RECORDS)
    assert not beside._ahead


def test_nothing_is_read_ahead_when_blue_is_about_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    copy, beside = FastCopy(monkeypatch, AHEAD_RECORDS), comparison()
    copy.wanted = 1
    beside.hurry()
    beside._next()
    assert (copy.fences, copy.stretches) == (1, [(0, 0)])
