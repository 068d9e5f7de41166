"""A driver without an executor says so within minutes, in its log and on the page, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.waiting_jobs import told_waiting
from kafka_rescale.core.page.health import Level
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs import executors
from kafka_rescale.spark.jobs import job as job_module
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.executors import AGAIN_SECONDS, PATIENCE_SECONDS, ExecutorWatch
from kafka_rescale.spark.jobs.job import Job

from tests.support.page.page_contents import RUN, copying

OWNER = f"expand_orders/{RUN}"


class Driver:
    """A driver: how many tasks its executors can run at a time, and the stages that want to run some."""

    def __init__(self, master: str = "spark://m:7077", conf: Mapping[str, str] | None = None) -> None:
        self.slots, self.active = 0, [1]
        profiles = SimpleNamespace(defaultResourceProfile=lambda: "default")
        scala = SimpleNamespace(
            maxNumConcurrentTasks=lambda _: self.slots, resourceProfileManager=lambda: profiles
        )
        self.context: Any = SimpleNamespace(
            master=master,
            getConf=lambda: conf or {},
            statusTracker=lambda: SimpleNamespace(getActiveStageIds=lambda: self.active),
            _jsc=SimpleNamespace(sc=lambda: scala),
        )


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(executors, "time", found)
    return found


def test_it_says_after_minutes_what_was_asked_of_which_master_and_what_to_do(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = ExecutorWatch(Driver(conf={"spark.cores.max": "2", "spark.executor.memory": "3g"}).context)
    clock.now += PATIENCE_SECONDS - 1
    watch.look()
    assert (watch.waits, caplog.text) == ("", "")
    clock.now += 1
    watch.look()
    for part in ("no executor for 3 min", "spark://m:7077", "spark.cores.max: 2", "3g of memory", "`copy_cores`"):
        assert part in watch.waits
        assert part in caplog.text


def test_the_log_says_it_again_only_after_a_while_and_it_is_over_when_an_executor_comes(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver()
    watch = ExecutorWatch(driver.context)
    for seconds in (PATIENCE_SECONDS, 10, AGAIN_SECONDS - 20, 10):
        clock.now += seconds
        watch.look()
    assert len(caplog.records) == 2
    driver.slots = 1
    watch.look()
    assert watch.waits == ""
    driver.slots = 0
    clock.now += PATIENCE_SECONDS - 1
    watch.look()
    assert watch.waits == "", "an executor that is lost has the same time to come back"


def test_a_driver_that_wants_to_run_nothing_waits_for_no_executor(clock: Clock) -> None:
    driver = Driver()
    driver.active = []
    watch = ExecutorWatch(driver.context)
    clock.now += PATIENCE_SECONDS
    watch.look()
    assert watch.waits == ""


def test_another_master_has_another_remedy(clock: Clock) -> None:
    watch = ExecutorWatch(Driver("yarn").context)
    clock.now += PATIENCE_SECONDS
    watch.look()
    assert "copy_cores" not in watch.waits
    assert "queue" in watch.waits


def test_a_job_that_waits_for_its_first_executor_says_so_in_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[JobResult] = []
    told = Event()

    def put_result(result: JobResult, _: Any) -> None:
        results.append(result)
        told.set()

    job = Job("catch_up", Arguments("shop", run="r", attempt=1), KafkaConnection({"bootstrap.servers": "x:1"}))
    control: Any = SimpleNamespace(put_result=put_result, read=ControlState)
    job.control = control
    monkeypatch.setattr(job_module, "REPORT_SECONDS", 0.01)
    monkeypatch.setattr(job_module, "copy_session", lambda *_: type("Session", (), {"sparkContext": None}))
    monkeypatch.setattr(job_module, "require_packages", lambda _: told.wait(60))
    monkeypatch.setattr(job_module, "missing_executor", lambda: "no executor")
    job.spark()
    assert (results[0].state, results[0].waits) == ("running", "no executor")
    job.put("done")
    assert results[-1].waits == ""


def test_page_and_status_say_that_a_job_of_the_run_in_progress_waits() -> None:
    world = copying("orders")
    waiting = JobResult(job="prove", run=OWNER, attempt=1, state="running", waits="found no executor for 3 min")
    control = world.control.model_copy(update={"results": {**world.control.results, "prove": waiting}})
    page = replace(world, control=control).page()
    assert page.summary.health.level is Level.ATTENTION
    assert page.summary.health.reason == "prove waits: found no executor for 3 min"
    assert next(each.detail for each in page.jobs if each.job == "prove") == waiting.waits
    for other in ({"run": "expand_orders/earlier"}, {"state": "done"}, {"waits": ""}):
        changed = {"prove": waiting.model_copy(update=other)}
        assert told_waiting(control.model_copy(update={"results": changed})) == []


def test_a_result_without_a_wait_is_the_record_of_earlier_versions() -> None:
    assert "waits" not in JobResult(job="prove", run="r", attempt=1, state="running").model_dump(mode="json")
