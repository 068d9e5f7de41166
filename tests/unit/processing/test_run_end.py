"""When a run's stream threads have ended, for a warm-up beside them."""

from __future__ import annotations

from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.processing.run_end import SILENT_SECONDS, RunEnd, jobs_of

JOBS = {"process/1/a-1", "process/2/a-2"}


def results(run: str = "now", **states: str) -> dict[str, JobResult]:
    names = {f"process/{each[1]}/a-{each[1]}": state for each, state in states.items()}
    return {name: JobResult(job=name, run=run, attempt=1, state=state) for name, state in names.items()}


def test_it_is_over_when_every_job_has_ended_however_it_did() -> None:
    assert RunEnd("now", JOBS).look(results(l1="done", l2="failed"), 0.0)


def test_one_that_still_runs_or_has_not_begun_is_waited_for() -> None:
    assert not RunEnd("now", JOBS).look(results(l1="done", l2="running"), 0.0)
    assert not RunEnd("now", JOBS).look(results(l1="done"), 0.0)


def test_what_an_earlier_run_has_left_does_not_count() -> None:
    assert not RunEnd("now", JOBS).look(results(run="before", l1="done", l2="done"), 0.0)


def test_a_run_that_reports_nothing_new_counts_as_ended() -> None:
    end = RunEnd("now", JOBS)
    running = results(l1="done", l2="running")
    assert not end.look(running, 0.0)
    assert not end.look(running, SILENT_SECONDS - 1)
    further = {**running, "process/2/a-2": running["process/2/a-2"].model_copy(update={"records": 7})}
    assert not end.look(further, SILENT_SECONDS)
    assert not end.look(further, 2 * SILENT_SECONDS - 1)
    assert end.look(further, 2 * SILENT_SECONDS)


def test_reports_of_others_do_not_keep_it_waiting() -> None:
    end = RunEnd("now", JOBS)
    other = JobResult(job="warm_up_processors/a", run="now", attempt=1, state="running")
    assert not end.look({other.job: other}, 0.0)
    assert end.look({other.job: other.model_copy(update={"records": 7})}, SILENT_SECONDS)


def test_nobody_is_waited_for_if_nobody_is_named() -> None:
    assert RunEnd("now", ()).look({}, 0.0)


def test_results_have_the_name_that_a_thread_had_when_the_run_began() -> None:
    threads = (
        ThreadRecord(name="a-StreamThread-1", state=ThreadState.RUNNING, tasks=("0_0", "1_0")),
        ThreadRecord(
            name="a-StreamThread-3", state=ThreadState.RUNNING, tasks=("0_1",), replaces="a-StreamThread-2"
        ),
    )
    record = Processing(clients=(ClientRecord(client_id="a", state=State.RUNNING, threads=threads),))
    assert jobs_of(record, [[0], [1]], {"0_1"}) == {"process/1/a-StreamThread-2"}
    assert jobs_of(record, [[0], [1]], {"1_0", "0_1"}) == {
        "process/1/a-StreamThread-2",
        "process/2/a-StreamThread-1",
    }
