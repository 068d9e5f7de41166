"""What a person sees while the demo's expansion runs."""

from __future__ import annotations

import time

from kafka_rescale.core.errors import RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.expansion.stages import lags
from rich.console import Console
from rich.live import Live
from rich.table import Table

from testbed.airflow_client import FINISHED_RUN, AirflowClient
from testbed.flights_stack import FlightsStack

RUN_SECONDS = 900
_MARKS = {"success": "[green]✓[/green]", "failed": "[red]✗[/red]", "running": "[yellow]…[/yellow]"}


def follow_run(console: Console, client: AirflowClient, dag: str, run_id: str, stack: FlightsStack) -> str:
    """Show the tasks and the lag until the run ends, and return its final state.

    On a terminal, this shows a table that changes. Elsewhere it prints a line for each change.
    """
    deadline = time.monotonic() + RUN_SECONDS
    shown: dict[str, str | None] = {}
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        while (state := client.run_state(dag, run_id)) not in FINISHED_RUN:
            if time.monotonic() > deadline:
                return f"{state} after {RUN_SECONDS} s"
            states = client.task_states(dag, run_id)
            changed = {t: s for t, s in states.items() if s != shown.get(t) and s in {*_MARKS, "deferred"}}
            for task, task_state in changed.items():
                console.print(f"  {_MARKS.get(task_state or '', '·')} {task}: {task_state}")
            shown = states
            live.update(_table(states, stack))
            time.sleep(1)
    return state


def _table(states: dict[str, str | None], stack: FlightsStack) -> Table:
    table = Table(title=f"{stack.sent():,} flights sent", title_justify="left")
    table.add_column("stage")
    table.add_column("task lag (offsets)", justify="right")
    for name, lag in _lag_per_topic(stack).items():
        table.add_row(name, f"{lag:,}")
    running = [t for t, s in states.items() if s == "running"]
    table.caption = f"running: {', '.join(running) or 'nothing'}"
    return table


def _lag_per_topic(stack: FlightsStack) -> dict[str, int]:
    connection = KafkaConnection(stack.client)
    try:
        journal = ControlTopic(connection, "flights").read().journal
        if journal is None or journal.is_promoted:
            return {}
        found: dict[str, int] = {}
        for progress in lags(connection, journal.plan, None):
            found[progress.topic] = found.get(progress.topic, 0) + progress.left
        return found
    except RescaleError:
        return {}
