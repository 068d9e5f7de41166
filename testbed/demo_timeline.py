"""How the demo's run spent its time: when tasks began, how long they took, and how long their jobs worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_rescale.core.control.job_results import JobResult
from rich.console import Console
from rich.table import Table

from testbed.airflow_client import AirflowClient

LEFT_OUT = frozenset({"skipped", "upstream_failed"})
WIDTH = 40


@dataclass(frozen=True)
class Span:
    """The time of one task.

    :param begins: seconds after the first task of the run.
    :param seconds: seconds from its begin to its end, including the time in which it was deferred.
    :param worked: how many of these seconds its Spark job has copied or compared, as the job says. The rest is the
        start and the end of its driver. 0 for tasks without a job.
    """

    task: str
    begins: float
    seconds: float
    worked: float = 0.0


def timeline(client: AirflowClient, dag: str, run_id: str, results: Mapping[str, JobResult]) -> list[Span]:
    """Return the tasks that ran, by their start.

    :param results: the results of the jobs in the control topic.
    """
    found = [t for t in client.tasks(dag, run_id) if t["start_date"] and t["state"] not in LEFT_OUT]
    ran = sorted(found, key=lambda task: task["start_date"])
    return [
        Span(
            task=str(task["task_id"]),
            begins=_seconds(ran[0]["start_date"], task["start_date"]),
            seconds=_seconds(task["start_date"], task["end_date"] or task["start_date"]),
            worked=_worked(str(task["task_id"]), results),
        )
        for task in ran
    ]


def _seconds(begin: str, end: str) -> float:
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds(), 1)


def _worked(task_id: str, results: Mapping[str, JobResult]) -> float:
    """Return the seconds of a task's job; ``stage_1_….restore`` is the job ``restore/1``."""
    stage, _, job = task_id.rpartition(".")
    result = results.get(f"{job}/{stage.split('_')[1]}" if stage else job)
    return round(result.seconds, 1) if result is not None else 0.0


def print_timeline(console: Console, spans: Sequence[Span]) -> None:
    """Print a bar for each task; the part of it in which its job has worked is darker."""
    if not spans:
        return
    whole = max(each.begins + each.seconds for each in spans) or 1.0
    console.rule(f"Where the {whole:.0f} s of the run went")
    table = Table("task", "begins", "takes", "its job works", "")
    for each in spans:
        before, bar, dark = (round(WIDTH * s / whole) for s in (each.begins, each.seconds, each.worked))
        drawn = " " * before + "█" * min(dark, bar) + "░" * max(bar - dark, not bar)
        worked = f"{each.worked:.1f}" if each.worked else ""
        table.add_row(each.task, f"{each.begins:.1f}", f"{each.seconds:.1f}", worked, drawn)
    console.print(table)
