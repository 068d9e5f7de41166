"""If a limit of a topic that a move writes to has to be raised: for how long, and what to do then."""

from __future__ import annotations

from kafka_rescale.core.formats.record_limits import AFTER_VERIFY
from kafka_rescale.core.plan.plan import Move, MoveKind

AFTER_BRIDGE = "until the bridge has ended; its next run goes on from its last commit."


def raised_until(move: Move, *, is_made: bool = True) -> str:
    """Return the end of the sentence that says on which topic to raise a limit.

    ``expand`` gives a topic of the next generation whatever configs its source has.

    :param is_made: whether the topic that is written to already exists.
    """
    until = AFTER_BRIDGE if move.kind is MoveKind.INPUT else AFTER_VERIFY
    return until if move.is_in_place or not is_made else f"and on {move.source} {until}"
