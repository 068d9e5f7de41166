"""Does a pause last longer than declared? The journal tells it to processes other than the cutover.

The pause begins when the running generation is asked to stop, or before, when producers of paused inputs are held.
It ends with the first output of the next generation, or when the running generation has been started again.
``max_pause_seconds`` only ends the part before the promotion, and only if the cutover is alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState


class PauseState(StrEnum):
    """What one look has found."""

    WAITING = "waiting"
    PAUSED = "paused"
    LATE = "late"
    OVER = "over"
    LOST = "lost"

    @property
    def is_final(self) -> bool:
        """Whether there is nothing more to watch."""
        return self in {PauseState.LATE, PauseState.OVER, PauseState.LOST}


@dataclass(frozen=True)
class PauseReading:
    """The pause at one moment.

    :param seconds: how long it has lasted; 0 before and after.
    :param phase: phase of the journal; empty if there is no journal.
    """

    state: PauseState
    seconds: float = 0.0
    phase: str = ""


def read_pause(state: ControlState, owner: str, limit_seconds: float, now_ms: int) -> PauseReading:
    """Return where the pause of a run's expansion is.

    :param owner: the run that watches; it ignores the pauses of other runs.
    :param limit_seconds: the longest pause without an alert.
    :param now_ms: wall clock, in ms since the epoch.
    """
    journal, lease = state.journal, state.lease
    if journal is None or lease is None:
        return PauseReading(PauseState.LOST)
    if is_down(journal):
        # No generation runs, whichever run holds the lease by now.
        seconds = (now_ms - journal.pause_started_ms) / 1000
        late = seconds > limit_seconds
        return PauseReading(PauseState.LATE if late else PauseState.PAUSED, seconds, str(journal.phase))
    if journal.phase not in {Phase.WARMING, Phase.ROLLING_BACK}:
        return PauseReading(PauseState.OVER, phase=str(journal.phase))
    ours = lease.owner == owner and not lease.released
    return PauseReading(PauseState.WAITING if ours else PauseState.LOST, phase=str(journal.phase))


def with_lost_pause(found: ControlState, known: ControlState | None) -> ControlState:
    """Return what was found, or what was known before if the control topic has lost its records within a pause.

    :param known: what the watch went by so far; None before its first look.
    """
    if found.journal is not None or known is None or known.journal is None:
        return found
    return known if is_down(known.journal) else found


def is_down(journal: Journal) -> bool:
    """Return whether perhaps no generation runs. During a rollback, blue may still be down."""
    if not journal.pause_started_ms:
        return False
    return journal.is_paused or (journal.phase is Phase.ROLLING_BACK and journal.stop_asked)


def is_stopped(journal: Journal) -> bool:
    """Return whether a generation was asked to stop, and none is known to have been started since."""
    return is_down(journal) and (journal.phase is not Phase.QUIESCING or journal.stop_asked)


def is_still_down(journal: Journal, *, is_live: bool) -> bool:
    """Return whether perhaps no generation runs, beside what the group of the running generation tells.

    :param is_live: whether that group has members. During a rollback, blue has been started again then.
    """
    return is_down(journal) and not (journal.phase is Phase.ROLLING_BACK and is_live)
