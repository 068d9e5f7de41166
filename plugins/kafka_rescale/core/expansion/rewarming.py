"""When does green restore again behind the warm-up gate, because its switch was waited for?"""

from __future__ import annotations

from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.control.warmth import Warmth
from kafka_rescale.core.expansion.switch_wait import Standing, wait_of

WORTH_SECONDS = 5.0
"""Less than that is left to the pause: to start green and to stop it again takes longer."""
AHEAD_MS = 600_000
MARGIN_MS = 180_000
"""How long before the end of a window green is stopped, so that the switch can still begin in it."""


def is_due(warmth: Warmth, switch: Switch, now_ms: int) -> bool:
    """Whether the switch is so near that it has to be decided whether green should restore again.

    It is decided ten minutes ahead of the switch, and also twice the time that the last restoring took, if that is
    more. If a person has said "now", nothing delays the switch.

    :param now_ms: wall clock, in ms since the epoch.
    """
    wait = wait_of(switch, now_ms)
    if wait.standing in {Standing.CANCELLED, Standing.EXPIRED} or wait.opens_ms is None or is_hurried(switch):
        return False
    looks = [wait.opens_ms - max(AHEAD_MS, round(2000 * warmth.seconds)), wait.opens_ms - AHEAD_MS]
    return any(warmth.checked_ms < from_ms <= now_ms for from_ms in looks)


def must_end(switch: Switch, now_ms: int) -> bool:
    """Whether green must not restore any longer: a person wants the switch, or the moment for it is about to pass.

    What it has restored by then stays.
    """
    if is_hurried(switch):
        return True
    now, soon = wait_of(switch, now_ms).standing, wait_of(switch, now_ms + MARGIN_MS).standing
    return soon is Standing.EXPIRED or (now is Standing.OPEN and soon is not Standing.OPEN)


def is_hurried(switch: Switch) -> bool:
    """Whether a person wants the switch at once, or not at all. A time that a person has named is waited for."""
    return switch.order is Order.CANCEL or (switch.order is Order.NOW and not switch.not_before_ms)
