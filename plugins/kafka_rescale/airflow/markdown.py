"""Plans, lags and assignments as Markdown, for logs and for the people who approve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.expansion.cutover_steps import CutoverStep
from kafka_rescale.core.expansion.switch_wait import after_approval, kept_near
from kafka_rescale.core.plan.not_copied import NOT_COPIED, told_not_copied
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import listed

if TYPE_CHECKING:
    from kafka_rescale.core.control.processing import Processing
    from kafka_rescale.core.control.switch import Switch

FURTHEST = 5
"""How many partitions an approval names. The page names all of them."""
NAMED = 4
"""How many names an approval gives for each step of the cutover. The page gives all of them."""


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
    empty = [
        (stage.name, NOT_COPIED, f"store {store}", "empty", "", "")
        for stage in plan.stages
        for store in stage.not_copied
    ]
    last = "start" if plan.is_in_place else "cutover"
    inputs = [(last, f"input ({i.policy})", i.topic, i.green_topic, i.current, i.target) for i in plan.inputs]
    names = [stage.name for stage in plan.stages]
    rows = sorted([*outputs, *moves, *empty], key=lambda row: names.index(row[0]))
    way = f"`{plan.blue}`, in place" if plan.is_in_place else f"`{plan.blue}` → `{plan.green}`"
    title = f"**{plan.application}** to {plan.partitions} partitions: {way}"
    header = ("stage", "what", "from", "to", "partitions", "then")
    return f"{title} (plan {plan.fingerprint})\n\n{table(header, [*rows, *inputs])}"


def remarks_markdown(messages: Iterable[str]) -> str:
    """Return preflight's remarks as a list, for the person who approves the plan."""
    return "".join(f"\n* {message}" for message in messages)


def assignment_markdown(processing: Processing) -> str:
    """Return tables: the tasks of each client, those that will still move, and those that lack standbys."""
    assignment = processing.assignment
    states = {c.client_id: f"absent: {c.absent}" if c.absent else str(c.state) for c in processing.clients}
    rows = [(client, states[client], *has) for client, *has in assignment.rows()]
    text = table(("client", "state", "active", "standbys"), rows)
    if to_come := list(assignment.movement_rows()):
        text = f"{text}\n\n{table(('task', 'role', 'runs on', 'goes to', 'waits for'), to_come)}"
    if missing := list(assignment.missing_rows()):
        text = f"{text}\n\n{table(('task', 'missing standbys'), missing)}"
    return text


def plan_brief(plan: Plan) -> str:
    """Return the plan in a few lines that fit a narrow column. It names inputs and outputs, which others see."""
    way = "in its own topics" if plan.is_in_place else f"`{plan.blue}` → `{plan.green}`"
    internal = f"{len(plan.moves)} internal topics in {len(plan.stages)} stages"
    lines = [f"**Plan**: to {plan.partitions} partitions, {way}; {internal} (plan {plan.fingerprint})."]
    lines += [f"* input `{i.green_topic}`, {i.policy}: {i.current} → {i.target}" for i in plan.inputs]
    outputs = [growth for stage in plan.stages for growth in stage.grow_outputs]
    lines += [f"* output `{growth.topic}`: {growth.current} → {growth.target}" for growth in outputs]
    lines += [f"* {told_not_copied([store])}." for store in plan.not_copied]
    return "\n".join(lines)


def steps_markdown(steps: Iterable[CutoverStep]) -> str:
    """Return what the cutover will do as a numbered list, with the first names that each step touches."""
    lines = [f"{n}. *{step.moment}*: {step.does}{_named(step.names)}" for n, step in enumerate(steps, 1)]
    return "\n".join(["**What the cutover will do**", "", *lines])


def _named(names: tuple[str, ...]) -> str:
    return f" ({listed([f'`{name}`' for name in names], NAMED)})" if names else ""


def waiting_markdown(switch: Switch, now_ms: int) -> str:
    """Return when the switch begins after an approval, and what becomes of the copies without an answer."""
    lines = [f"**If you approve** without another time: {after_approval(switch, now_ms)}."]
    lines += ["**If nobody answers**, nothing is thrown away.", *kept_near(switch, now_ms)]
    return " ".join([*lines, "After that the run ends; what was copied stays for the next run."])


def lag_verdict(event: Mapping[str, Any]) -> str:
    """Return in a sentence how near the copies are."""
    lags, threshold = event.get("lags", []), event.get("threshold", 0)
    if not lags:
        return "**No copies to wait for**: there is no changelog, or the cutover has begun before."
    beyond = sum(lag is None or lag > threshold for *_, lag in lags)
    if beyond:
        return f"**{beyond} of {len(lags)} partitions are not within {threshold:,} offsets of the end.**"
    largest = max(lag for *_, lag in lags)
    within = f"All {len(lags)} partitions are within {threshold:,} offsets of the end"
    return f"**{within}; the largest lag is {largest:,}.**"


def lag_table(event: Mapping[str, Any]) -> str:
    """Return the partitions that are furthest behind; nothing if there are no lags."""
    lags = event.get("lags", [])
    if not lags:
        return ""
    rows = [("none yet" if lag is None else f"{lag:,}", f"{topic}-{part}") for topic, part, lag in lags]
    more = len(rows) - FURTHEST
    rest = f"\n\nThe page shows the other {more}, which are no further behind." if more > 0 else ""
    return f"{table(('lag', 'furthest behind'), rows[:FURTHEST])}{rest}"


def copied_markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what jobs have copied, in a sentence; nothing if there were no such jobs.

    :param results: The return value of each task.
    """
    found = [result for result in results.values() if result.get("seconds") is not None]
    if not found:
        return ""
    records, seeded, size = (sum(each.get(name, 0) for each in found) for name in ("records", "seeded", "bytes"))
    snapshots = f", {seeded:,} of them rows of snapshots" if seeded else ""
    seconds = sum(each["seconds"] for each in found)
    took = f"in {seconds:,.0f} s of {len(found)} tasks"
    return f"Copied: {records:,} records ({size / 1e6:,.1f} MB){snapshots}, {took}."


def proven_markdown(result: Mapping[str, Any], now: float, not_copied: Sequence[str]) -> str:
    """Return what the proof has shown, and how old it is; nothing if there were no copies to prove.

    :param result: the return value of the task ``prove``.
    :param now: seconds since the epoch.
    :param not_copied: names of the plan's stores without a changelog, which no proof covers.
    """
    if not result.get("detail"):
        return ""
    age = max(0.0, now - result.get("as_of_ms", 0) / 1000)
    took = f"in {result.get('seconds', 0):,.0f} s"
    what = "All that is copied" if not_copied else "The whole state"
    return (
        f"**{what} was proven {age:,.0f} s ago**, {took}: {result['detail']}. "
        "No promotion goes without this proof."
    )


def rehearsed_markdown(result: Mapping[str, Any]) -> str:
    """Return what the rehearsal of a move in place has found, and which pause to expect.

    :param result: the return value of the task ``rehearse``.
    """
    records, size, seconds = (result.get(name, 0) for name in ("records", "bytes", "seconds"))
    if not records:
        return "**No record has to move.** Expected pause: that of a restart."
    return (
        f"**Every record that has to move can be moved: {records:,} ({size / 1e6:,.1f} MB).** "
        f"Expected pause: a restart, and the move; reading the state took {seconds:,.1f} s."
    )


def table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    lines = [tuple(map(str, header))]
    lines.append(tuple("---" for _ in lines[0]))
    lines.extend(tuple(map(str, row)) for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
