"""An assignment and its movements as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from kafka_rescale.core.assignment.assignment import Assignment, Movement
from kafka_rescale.core.assignment.tasks import Role, TaskId
from kafka_rescale.core.values import listed

COLUMN, GAP, ROW, TOP, EDGE = 120, 60, 26, 40, 10
NAMED = 3
"""How many tasks that lack a standby the picture names. A picture of two clients has no room for more."""
LOOKS = {
    "active": 'fill="#2e7d32" stroke="#2e7d32"',
    "standby": 'fill="#eceff1" stroke="#78909c"',
    "warm-up": 'fill="#fff3e0" stroke="#ef6c00" stroke-dasharray="4 3"',
}
Place = tuple[str, TaskId]


def svg(assignment: Assignment) -> str:
    """Return a picture with a column of tasks per client.

    An arrow shows each movement that is still to come. The arrow of an active task is bold.
    """
    places = {
        (client, task): row
        for client, has in assignment.clients.items()
        for row, task in enumerate((*has.active, *has.standby))
    }
    columns = {client: EDGE + number * (COLUMN + GAP) for number, client in enumerate(assignment.clients)}
    rows = max((len(has.all) for has in assignment.clients.values()), default=0)
    width, height = 2 * EDGE + len(columns) * (COLUMN + GAP) - GAP, TOP + (rows + 2) * ROW
    lacking = [task for task, _ in assignment.missing_rows()]
    height += ROW if lacking else 0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#ef6c00"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(height),
        *(f'<text x="{x}" y="{TOP - 14}" font-weight="bold">{escape(c)}</text>' for c, x in columns.items()),
        *(_box(assignment, place, columns, row) for place, row in places.items()),
        *(_arrow(move, columns, places) for move in assignment.to_come()),
        *_lacking(lacking, height),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _lacking(tasks: Sequence[str], height: int) -> Iterator[str]:
    if tasks:
        text = f"no client for a standby: {listed(tasks, NAMED)}"
        yield f'<text x="{EDGE}" y="{height - ROW - 11}" fill="#ef6c00">{text}</text>'


def _legend(height: int) -> Iterator[str]:
    for number, (name, look) in enumerate(LOOKS.items()):
        x, y = EDGE + number * 80, height - ROW + 4
        yield f'<rect x="{x}" y="{y}" width="12" height="12" {look}/><text x="{x + 17}" y="{y + 11}">{name}</text>'


def _box(assignment: Assignment, place: Place, columns: dict[str, int], row: int) -> str:
    client, task = place
    kind = "active" if task in assignment.clients[client].active else "standby"
    if task in assignment.warm_ups(client):
        kind = "warm-up"
    x, y = columns[client], TOP + row * ROW
    colour = "white" if kind == "active" else "black"
    return (
        f'<rect x="{x}" y="{y}" width="{COLUMN}" height="{ROW - 4}" rx="3" {LOOKS[kind]}/>'
        f'<text x="{x + 8}" y="{y + 16}" fill="{colour}">{task}</text>'
    )


def _arrow(move: Movement, columns: dict[str, int], places: dict[Place, int]) -> str:
    """Return the arrow from the place where a task runs to the place where it will run.

    The arrow ends at the client's name if that client has no copy of the task yet.
    """
    begin, end = columns[move.runs_on], columns[move.goes_to]
    to_right = begin < end
    x1, x2 = (begin + COLUMN, end) if to_right else (begin, end + COLUMN)
    y1 = TOP + places[move.runs_on, move.task] * ROW + ROW / 2 - 2
    row = places.get((move.goes_to, move.task))
    y2 = TOP - 18 if row is None else TOP + row * ROW + ROW / 2 - 2
    width = 2 if move.role is Role.ACTIVE else 1
    return f'<path d="M{x1},{y1:g} L{x2},{y2:g}" stroke="#ef6c00" stroke-width="{width}" marker-end="url(#tip)"/>'
