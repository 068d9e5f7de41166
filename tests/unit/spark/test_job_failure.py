"""The result that a job leaves when it fails while the brokers are away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import ClusterOutage, Fenced, RescaleError
from kafka_rescale.spark.jobs import run as job_run

FAILURE = ValueError("a failure")


def job(answers: list[RescaleError | None], put: list[str]) -> Any:
    def try_to_put(state: str, detail: str, **_: object) -> None:
        put.append(f"{state} {detail}")
        if (error := answers.pop(0)) is not None:
            raise error

    return SimpleNamespace(put=try_to_put, connection=None, arguments=SimpleNamespace(application="app"))


def outage() -> ClusterOutage:
    return ClusterOutage("brokers", found="nothing", expected="an answer", remedy="Wait.")


@pytest.fixture(autouse=True)
def without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_run, "ControlTopic", lambda *_: None)
    monkeypatch.setattr(job_run, "RECORD_PAUSE_SECONDS", 0.0)


def test_a_failure_is_recorded_when_the_brokers_are_back() -> None:
    put: list[str] = []
    job_run._leave_failure(job([outage(), outage(), None], put), FAILURE)
    assert put == ["failed ValueError: a failure"] * 3


def test_a_failure_of_an_attempt_that_was_overtaken_is_not_recorded() -> None:
    put: list[str] = []
    fenced = Fenced("job", found="a newer one", expected="none", remedy="Nothing.")
    job_run._leave_failure(job([outage(), fenced], put), FAILURE)
    assert len(put) == 2


def test_a_failure_that_nobody_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[str] = []
    monkeypatch.setattr(job_run, "RECORD_SECONDS", 0.0)
    job_run._leave_failure(job([outage()], put), FAILURE)
    assert len(put) == 1
