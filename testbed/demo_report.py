"""The demo's closing report, and whether it passed: order, proof, aggregates, downtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.expansion.prewarming import remark
from kafka_rescale.core.expansion.run import tasks_of
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.report_text import render, render_proof
from rich.console import Console
from rich.table import Table

from testbed.demo_timeline import Span, print_timeline

PARTS = {
    "drain": "producers held, inputs drained",
    "quiesce": "the old generation stops",
    "prove": "proof that it is gone",
    "delta": "last delta and in-flight records",
    "delta_proof": "proof of the last delta",
    "promote": "promotion",
    "grow": "input topics grow",
    "offsets": "offsets for the new generation",
    "release": "what is held joins its group",
    "restore": "it restores, to its first write",
    "first_output": "from there to its first output",
}


@dataclass(frozen=True)
class Outcome:
    """What the demo found.

    :param tasks: the tasks, in the order in which they started.
    :param proof: what `prove` has found before the promotion.
    :param is_promoted: whether the next generation has taken over.
    :param report: verify's report.
    :param timings: seconds per part of the downtime.
    :param prewarmed: seconds per part of the pre-warming.
    :param was_live: whether flights still went on arriving when the run ended.
    :param compared: number of keys in each topic that were compared with the independent computation.
    """

    run_id: str
    state: str
    tasks: list[Span]
    proof: dict[str, Any]
    is_promoted: bool
    report: dict[str, Any]
    timings: dict[str, float]
    prewarmed: dict[str, float]
    flights: int
    compared: dict[str, int]
    differences: list[str]
    was_live: bool

    @property
    def passed(self) -> bool:
        """Whether the run ended well and in order, beside a live input, and everything compared is equal."""
        return not self.shortcomings

    @property
    def shortcomings(self) -> list[str]:
        """The reasons why the demo has not passed, as text for a person; empty if it has passed."""
        untimed = PARTS.keys() - self.timings.keys()
        missing = {
            f"the DAG run ended as {self.state}": self.state != "success",
            "verify did not pass": not self.report.get("passed"),
            "no final aggregate was compared": not self.compared,
            "final aggregates differ": bool(self.differences),
            "tasks began in another order": not stages_in_order([each.task for each in self.tasks]),
            "the input had ended before the run": not self.was_live,
            f"parts of the downtime were not measured: {', '.join(sorted(untimed))}": bool(untimed),
        }
        return [what for what, is_missing in missing.items() if is_missing]


def stages_in_order(order: list[str]) -> bool:
    """Return whether every task of a successful run began, and began after all tasks that it waits for."""
    stages = {task.split(".")[0] for task in order if "." in task}
    tasks = tasks_of(Mode.BLUE_GREEN, sorted(stages, key=lambda stage: int(stage.split("_")[1])))
    began = {task: place for place, task in enumerate(order)}
    missing = [t for t in tasks if t.task_id not in began and not t.step.unless]
    too_early = [t for t in tasks if any(began.get(w, -1) > began.get(t.task_id, len(order)) for w in t.waits_for)]
    # A task that runs beside the cutover is up before the cutover: gate_all waits for that.
    late = [t for t in tasks if t.step.is_beside and began.get(t.task_id, -1) > began.get("cutover", -1)]
    return bool(stages) and not (missing or too_early or late)


def print_report(console: Console, outcome: Outcome, directory: Path) -> None:
    """Print everything, and keep it as JSON beside the logs."""
    (directory / "report.json").write_text(json.dumps(asdict(outcome) | {"passed": outcome.passed}, indent=1))
    print_timeline(console, outcome.tasks)
    if outcome.report:
        console.rule("Verification: old against new generation, the whole state")
        console.print(render(Report.model_validate(outcome.report)))
    elif outcome.proof:
        console.rule("Proof before the promotion: old against new generation, the whole state")
        console.print(render_proof(Proof.model_validate(outcome.proof)))
    if not outcome.is_promoted:
        console.print("Nothing was promoted: the old generation runs on.")
    _print_aggregates(console, outcome)
    _print_downtime(console, outcome.timings)
    console.print(remark(outcome.timings, outcome.prewarmed))
    failed = f"[red]FAILED[/red] ({'; '.join(outcome.shortcomings)})"
    verdict = "[green]PASSED[/green]" if outcome.passed else failed
    console.rule()
    console.print(f"[bold]{verdict}[/bold]   details: {_short(directory / 'report.json')}")


def _print_aggregates(console: Console, outcome: Outcome) -> None:
    if not outcome.compared:
        return
    console.rule(f"Final aggregates of {outcome.flights:,} flights, beside an independent computation")
    table = Table("topic", "live keys compared")
    for topic, keys in outcome.compared.items():
        table.add_row(topic, f"{keys:,}")
    console.print(table)
    for difference in outcome.differences:
        console.print(f"[red]{difference}[/red]")
    if not outcome.differences:
        console.print("all equal")


def _print_downtime(console: Console, timings: Mapping[str, float]) -> None:
    if not timings:
        return
    console.rule("Downtime, from asking the old generation to stop to the first new output")
    total = timings.get("total", sum(timings.values()))
    table = Table("part", "seconds", "")
    for part, meaning in PARTS.items():
        if part in timings:
            bar = "█" * round(40 * timings[part] / max(total, 0.001))
            table.add_row(meaning, f"{timings[part]:.2f}", bar)
    table.add_row("[bold]total[/bold]", f"[bold]{total:.2f}[/bold]", "")
    console.print(table)


def _short(file: Path) -> Path:
    """Return a path relative to the present directory if it lies below, because the rest is this machine's own."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
