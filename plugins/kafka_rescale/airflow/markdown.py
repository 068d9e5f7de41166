"""Plans, lags and assignments as Markdown, for logs and for the people who approve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.plan.plan import Plan

if TYPE_CHECKING:
    from kafka_rescale.core.control.processing import Processing

SHOWN_PARTITIONS = 20


def plan_markdown(plan: Plan) -> str:
    """Return the plan as a table: the stages in their order, then the inputs."""
    moves = [
        (stage.name, move.kind.value, move.source, move.target, move.source_partitions, move.target_partitions)
        for stage in plan.stages
        for move in (*stage.moves, *stage.bridges)
    ]
    outputs = [
        (stage.name, "output", growth.topic, growth.topic, growth.current, growth.target)
        for stage in plan.stages
        for growth in stage.grow_outputs
    ]
    last = "start" if plan.is_in_place else "cutover"
    inputs = [(last, f"input ({i.policy})", i.topic, i.green_topic, i.current, i.target) for i in plan.inputs]
    names = [stage.name for stage in plan.stages]
    rows = sorted([*outputs, *moves], key=lambda row: names.index(row[0]))
    way = f"`{plan.blue}`, in place" if plan.is_in_place else f"`{plan.blue}` → `{plan.green}`"
    title = f"**{plan.application}** to {plan.partitions} partitions: {way}"
    header = ("stage", "what", "from", "to", "partitions", "then")
    return f"{title} (plan {plan.fingerprint})\n\n{table(header, [*rows, *inputs])}"


def remarks_markdown(messages: Iterable[str]) -> str:
    """Return preflight's remarks as a list, for the person who approves the plan."""
    return "".join(f"\n* {message}" for message in messages)


def assignment_markdown(processing: Processing) -> str:
    """Return two tables: the tasks of each client, and the tasks that will still move."""
    assignment = processing.assignment
    states = {c.client_id: f"absent: {c.absent}" if c.absent else str(c.state) for c in processing.clients}
    rows = [(client, states[client], *has) for client, *has in assignment.rows()]
    text = table(("client", "state", "active", "standbys"), rows)
    to_come = list(assignment.movement_rows())
    if not to_come:
        return text
    return f"{text}\n\n{table(('task', 'role', 'runs on', 'goes to', 'waits for'), to_come)}"


def lag_markdown(event: Mapping[str, Any]) -> str:
    """Return the gate's lags as a table of the partitions that are furthest behind."""
    lags = event.get("lags", [])
    rows = [(topic, partition, "none yet" if lag is None else lag) for topic, partition, lag in lags]
    more = len(rows) - SHOWN_PARTITIONS
    title = f"{len(rows)} partitions, acceptable lag {event.get('threshold')} offsets each"
    rest = f"\n\n… and {more} more partitions, none of them further behind than these" if more > 0 else ""
    return f"{title}\n\n{table(('topic', 'partition', 'lag'), rows[:SHOWN_PARTITIONS])}{rest}"


def copied_markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of what the jobs have copied, one row per task; empty if no job has copied anything.

    :param results: The return value of each task.
    """
    rows = [
        (
            task,
            found.get("state"),
            f"{found.get('records', 0):,}",
            f"{found.get('seeded', 0):,}",
            f"{found.get('bytes', 0) / 1e6:,.1f}",
            seconds,
        )
        for task, found in results.items()
        if (seconds := found.get("seconds")) is not None
    ]
    return table(("task", "state", "records copied", "from snapshots", "MB", "seconds"), rows) if rows else ""


def table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    lines = [tuple(map(str, header))]
    lines.append(tuple("---" for _ in lines[0]))
    lines.extend(tuple(map(str, row)) for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
