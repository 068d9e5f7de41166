"""A client of Airflow's public REST API, for tests, demo and benchmarks."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from testbed.airflow_api import AirflowApi, AirflowApiError
from testbed.processes import wait_until

FINISHED_RUN = frozenset({"success", "failed"})
FINISHED_TASK = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
PARTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


class AirflowClient(AirflowApi):
    """Triggers, watches and answers the runs of one Airflow.

    :param log: the file that all parts of this Airflow write to. Approvals need it.
    """

    def __init__(self, url: str, log: Path, token: str | None = None) -> None:
        super().__init__(url, token)
        self._log = log

    def is_healthy(self) -> bool:
        """Whether every part has reported itself healthy."""
        try:
            health = self._health()
        except (AirflowApiError, OSError):
            return False
        return all((health.get(part) or {}).get("status") == "healthy" for part in PARTS)

    def await_dag(self, dag_id: str, *, timeout: float = 180) -> None:
        """Return when Airflow knows a DAG, whose file may be parsed some time after the other files.

        :param timeout: seconds
        """
        self.wait(lambda: dag_id in self.dag_ids(), f"DAG {dag_id} to be parsed", timeout)

    def dag_ids(self) -> set[str]:
        """Return the ids of all DAGs."""
        return {dag["dag_id"] for dag in self._dags()}

    def parse_again(self, dag_id: str) -> None:
        """Have the file of a DAG parsed now, with all DAGs of that file, instead of when its time has come."""
        token = next(dag["file_token"] for dag in self._dags() if dag["dag_id"] == dag_id)
        self.request("PUT", f"/parseDagFile/{_quoted(token)}")

    def import_errors(self) -> dict[str, str]:
        """Return the stack trace of every DAG file that could not be imported, by file."""
        errors = self.request("GET", "/importErrors")["import_errors"]
        return {each["filename"]: each["stack_trace"] for each in errors}

    def pause(self, dag_id: str, paused: bool = True) -> None:
        """Keep a DAG's new runs from being started, or let them start."""
        self.await_dag(dag_id)
        self.request("PATCH", f"/dags/{_quoted(dag_id)}", {"is_paused": paused})

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, *, run_id: str | None = None) -> str:
        """Start a run, let the DAG's runs be scheduled, and return the run's id.

        In this order, the run comes before a run that a schedule starts as soon as the DAG is not paused.
        """
        self.await_dag(dag_id)
        body = {"logical_date": None, "conf": dict(conf or {})} | ({"dag_run_id": run_id} if run_id else {})
        started = self.request("POST", f"/dags/{_quoted(dag_id)}/dagRuns", body)["dag_run_id"]
        self.pause(dag_id, False)
        return str(started)

    def backfill(
        self, dag_id: str, from_date: str, to_date: str, conf: Mapping[str, Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Create a backfill of a scheduled DAG (ISO dates), as the UI's form does, and return it.

        :param options: further fields of the form, such as ``reprocess_behavior``.
        """
        self.await_dag(dag_id)
        body = {"dag_id": dag_id, "from_date": from_date, "to_date": to_date, "dag_run_conf": dict(conf or {})}
        return dict(self.request("POST", "/backfills", body | options))

    def has_running_backfill(self, dag_id: str) -> bool:
        """Whether a backfill is running. It keeps others from being created, even a while after its last run."""
        known = self.request("GET", f"/backfills?dag_id={_quoted(dag_id)}")["backfills"]
        return any(each["completed_at"] is None for each in known)

    def runs(self, dag_id: str) -> dict[str, dict[str, Any]]:
        """Return all runs of a DAG by id."""
        found = self.request("GET", f"/dags/{_quoted(dag_id)}/dagRuns?limit=500")["dag_runs"]
        return {run["dag_run_id"]: run for run in found}

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return a run's state."""
        return str(self.request("GET", _run(dag_id, run_id))["state"])

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a run, as the UI's *Mark as* does."""
        self.request("PATCH", _run(dag_id, run_id), {"state": state})

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Return the state of every task of a run; None before it is scheduled."""
        return {task["task_id"]: task["state"] for task in self.tasks(dag_id, run_id)}

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return everything about every task instance of a run, with each instance of a mapped task."""
        return list(self.request("GET", f"{_run(dag_id, run_id)}/taskInstances?limit=500")["task_instances"])

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Return everything about a task instance, such as its ``try_number`` and rendered fields."""
        return dict(self.request("GET", f"{_run(dag_id, run_id)}/taskInstances/{task_id}"))

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """Return an XCom's value."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        return self.request("GET", path)["value"]

    def log(
        self, dag_id: str, run_id: str, task_id: str, try_number: int | None = None, map_index: int = -1
    ) -> str:
        """Return the log of a try, by default of the last try. A mapped task needs both numbers."""
        number = try_number or self.task(dag_id, run_id, task_id)["try_number"]
        query = f"full_content=true&map_index={map_index}"
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/logs/{number}?{query}"
        entries = self.request("GET", path)["content"]
        return "\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries)

    def hitl(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Return what a person is asked: ``subject``, ``body``, ``options``."""
        return dict(self.request("GET", f"{_run(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"))

    def is_answerable(self, dag_id: str, run_id: str, task_id: str) -> bool:
        """Whether a task asks a person, and takes the answer.

        Airflow 3.3 fails a try that is answered before its scheduler has heard that it is parked, and then asks
        again.
        """
        task = self.task(dag_id, run_id, task_id)
        return task["state"] == "awaiting_input" and self._scheduler_has_heard(
            dag_id, run_id, task_id, task["try_number"]
        )

    def approve(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Answer *Approve*, and return when the task has ended."""
        self._answer(dag_id, run_id, task_id, "Approve")

    def reject(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Answer *Reject*, and return when the task has ended."""
        self._answer(dag_id, run_id, task_id, "Reject")

    def clear(self, dag_id: str, run_id: str, task_ids: Collection[str], *, downstream: bool = True) -> list[str]:
        """Clear tasks in any state, and by default all tasks downstream of them. Return their ids."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "include_downstream": downstream,
        }
        cleared = self.request("POST", f"/dags/{_quoted(dag_id)}/clearTaskInstances", body)
        return [task["task_id"] for task in cleared["task_instances"]]

    def wait_for_run(self, dag_id: str, run_id: str, *, timeout: float) -> str:
        """Return a run's final state.

        :param timeout: seconds
        """
        self.wait(lambda: self.run_state(dag_id, run_id) in FINISHED_RUN, f"the end of {run_id}", timeout)
        return self.run_state(dag_id, run_id)

    def wait_for_task(
        self, dag_id: str, run_id: str, task_id: str, *, states: Collection[str] = FINISHED_TASK, timeout: float
    ) -> str:
        """Return a task's state once it is one of ``states``.

        :param timeout: seconds
        """

        def state() -> str:
            return self.task_states(dag_id, run_id).get(task_id) or "none"

        self.wait(lambda: state() in states, f"{task_id} of {run_id} to be {' or '.join(states)}", timeout)
        return state()

    def wait(self, condition: Callable[[], object], what: str, timeout: float) -> None:
        """Return as soon as the condition holds; the API is asked at most twice a second.

        :param timeout: seconds
        :raises TimeoutError: the condition did not hold in time. The error names ``what`` was waited for, and the
            parts of this Airflow that don't work.
        """
        try:
            wait_until(condition, timeout=timeout, what=what, poll_seconds=0.5)
        except TimeoutError as error:
            raise TimeoutError("\n".join([f"{error}. {self._condition()}", *self._ended_parts()])) from None

    def _answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"

        def ended() -> bool:
            if self.is_answerable(dag_id, run_id, task_id) and not self.request("GET", path)["response_received"]:
                self.request("PATCH", path, {"chosen_options": [option], "params_input": {}})
            return self.task(dag_id, run_id, task_id)["state"] in FINISHED_TASK

        self.wait(ended, f"{task_id} of {run_id} to end after {option}", 240)

    def _scheduler_has_heard(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> bool:
        """Return whether the scheduler has read from its executor that the process of a try has ended."""
        key = f"dag_id={dag_id!r}, task_id={task_id!r}, run_id={run_id!r}, try_number={try_number},"
        word = f"Received executor event with state success for task instance TaskInstanceKey({key}"
        return word in self._log.read_text(errors="replace")

    def _dags(self) -> list[dict[str, Any]]:
        return list(self.request("GET", "/dags?limit=500")["dags"])

    def _condition(self) -> str:
        try:
            health = self._health()
        except (AirflowApiError, OSError) as error:
            return f"Airflow does not say how it is: {error}"
        return ", ".join(f"{part}: {(health.get(part) or {}).get('status')}" for part in PARTS)

    def _ended_parts(self) -> list[str]:
        """Return the last words of parts that have ended. Airflow does not start such a part again."""
        if not self._log.exists():
            return []
        said = self._log.read_text(errors="replace").splitlines()
        return [line for line in said if "Exception when executing" in line]

    def _health(self) -> dict[str, Any]:
        health: dict[str, Any] = self.send("GET", "/api/v2/monitor/health")
        return health


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{_quoted(dag_id)}/dagRuns/{_quoted(run_id)}"
