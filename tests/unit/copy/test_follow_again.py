"""A task of catch_up begins again after an error of the brokers, but never if there is a newer job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import ClusterOutage, Fenced
from kafka_rescale.spark.copy import tasks
from kafka_rescale.spark.copy.tasks import CARRIED_AGAIN, FINISHED, Follow

nothing: Any = None


def outage() -> ClusterOutage:
    return ClusterOutage("brokers", found="nothing", expected="an answer", remedy="Wait.")


def begun(monkeypatch: pytest.MonkeyPatch, failures: list[Exception], announced: bool) -> list[str]:
    calls: list[str] = []

    def follow(_: Follow, __: object, ___: object, sessions: list[str]) -> str:
        calls.append("follow")
        if announced:
            sessions.append("session")
        if failures:
            raise failures.pop(0)
        return FINISHED

    monkeypatch.setattr(Follow, "_follow", follow)
    monkeypatch.setattr(Follow, "_require_newest", lambda *_: calls.append("look"))
    return calls


def test_an_outage_of_the_cluster_does_not_end_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = begun(monkeypatch, [outage(), outage()], announced=False)
    assert Follow(nothing, nothing, 1, "session").work([], nothing) == FINISHED
    assert calls == ["follow"] * 3


def test_a_task_that_has_said_that_it_follows_looks_for_a_newer_job_first(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = begun(monkeypatch, [outage()], announced=True)
    Follow(nothing, nothing, 1, "session").work([], nothing)
    assert calls == ["follow", "look", "follow"]


def test_a_task_that_was_fenced_does_not_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = begun(monkeypatch, [Fenced("a", found="b", expected="c", remedy="D.")], announced=True)
    with pytest.raises(Fenced):
        Follow(nothing, nothing, 1, "session").work([], nothing)
    assert calls == ["follow"]


class Carrier:
    """Copies the records in flight. Some of these copies have an aborted transaction."""

    made: int
    aborted: int

    def __init__(self, *_: object) -> None:
        type(self).made += 1
        self.writers: dict[Any, Any] = {}
        self.commits = SimpleNamespace(has_rewound=type(self).made <= type(self).aborted)

    begin = run_to = close = lambda *_, **__: None


@pytest.mark.parametrize(("aborted", "made"), [(0, 1), (2, 3), (CARRIED_AGAIN, CARRIED_AGAIN + 1)])
def test_records_in_flight_are_copied_once_more_after_an_abort(
    monkeypatch: pytest.MonkeyPatch, aborted: int, made: int
) -> None:
    carry(monkeypatch, aborted)
    assert Carrier.made == made


def test_aborts_again_and_again_are_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterOutage, match="aborted again and again"):
        carry(monkeypatch, 99)


def carry(monkeypatch: pytest.MonkeyPatch, aborted: int) -> None:
    monkeypatch.setattr(Carrier, "made", 0, raising=False)
    monkeypatch.setattr(Carrier, "aborted", aborted, raising=False)
    monkeypatch.setattr(tasks, "CopyWorker", Carrier)
    monkeypatch.setattr(tasks.in_flight, "starts_and_ends", lambda *_: ({}, {}))
    monkeypatch.setattr(Follow, "_prepare", lambda *_: None)
    carrier: Any = Carrier()
    plan: Any = SimpleNamespace(moves=())
    Follow(nothing, plan, 1, "session")._carry(["a", "b"], carrier, nothing)  # type: ignore[list-item]
