"""The pause of an application in its parts, for people."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.expansion.pause_alert import is_still_down
from kafka_rescale.core.expansion.prewarming import remark_on
from kafka_rescale.core.values import Value

PARTS: dict[str, str] = {
    "drain": "producers held, inputs drained",
    "quiesce": "old generation stops",
    "prove": "proven gone",
    "rehearse": "what moves is checked",
    "delta": "last delta copied",
    "delta_proof": "last delta compared",
    "promote": "promotion",
    "expand": "its own topics grow",
    "move": "what moves is copied",
    "grow": "inputs grow",
    "offsets": "start offsets committed",
    "start": "new generation starts",
    "release": "what is held joins its group",
    "restore": "it restores its stores",
    "first_output": "its first output",
}
TOTAL = "total"


class Part(Value):
    """One part of the pause in seconds."""

    name: str
    meaning: str
    seconds: float


class Downtime(Value):
    """The pause of an expansion.

    :param parts: in their order, including the time between the parts. Without a total they are not the whole
        pause: a rollback measures neither the part that has failed nor the new start.
    :param total: seconds of a pause that has ended; None before, and after a rollback.
    :param since_ms: wall clock at which the present pause began; None without a pause.
    :param prewarmed: seconds per part of the pre-warming ahead of the pause.
    :param remark: how much pre-warming and a held start have saved, or would have saved.
    """

    parts: tuple[Part, ...] = ()
    total: float | None = None
    since_ms: int | None = None
    prewarmed: dict[str, float] = Field(default_factory=dict)
    remark: str = ""


def downtime(journal: Journal | None, *, is_live: bool = False) -> Downtime:
    """Return the pause of a journal's expansion.

    :param is_live: whether the group of the running generation has members.
    """
    if journal is None:
        return Downtime()
    return Downtime(
        parts=parts_of(journal.timings),
        total=journal.timings.get(TOTAL),
        since_ms=journal.pause_started_ms if is_still_down(journal, is_live=is_live) else None,
        prewarmed=dict(journal.prewarmed),
        remark=remark_on(journal),
    )


def parts_of(timings: Mapping[str, float]) -> tuple[Part, ...]:
    """Return the parts of a pause in their order.

    :param timings: seconds by part, as the journal has them.
    """
    known = [name for name in PARTS if name in timings]
    others = [name for name in timings if name not in PARTS and name != TOTAL]
    parts = [Part(name=n, meaning=PARTS.get(n, n), seconds=timings[n]) for n in (*known, *others)]
    between = timings.get(TOTAL, 0.0) - sum(p.seconds for p in parts)
    if between > 0.05:
        parts.append(Part(name="between", meaning="between the parts", seconds=round(between, 3)))
    return tuple(parts)
