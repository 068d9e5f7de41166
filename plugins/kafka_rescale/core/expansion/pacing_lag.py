"""Does the lag of the application's own inputs grow while its state is copied?"""

from __future__ import annotations

from collections.abc import Sequence

WINDOW_MS = 60_000
"""Applications commit every 30 s by default. Between two commits their lag rises, and each commit lets it fall.
So the least lag of a minute is compared with the least lag of the minute before."""
LEAST_GROWTH = 1_000
"""In records. A smaller growth doesn't count."""
RELATIVE_GROWTH = 0.1


def growth(samples: Sequence[tuple[int, int]]) -> str | None:
    """Return the growth in a sentence; empty if there is no growth, None as long as that can't be told.

    :param samples: wall clock in ms and lag in records, the latest last.
    """
    if not samples:
        return None
    now = samples[-1][0]
    new = [lag for at, lag in samples if at > now - WINDOW_MS]
    old = [lag for at, lag in samples if now - 2 * WINDOW_MS < at <= now - WINDOW_MS]
    if not old:
        return None
    before, after = min(old), min(new)
    if after - before < max(LEAST_GROWTH, RELATIVE_GROWTH * before):
        return ""
    return f"the application's input lag has grown from {before:,} to {after:,} records in a minute"


def recent(samples: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the samples that still count."""
    return [sample for sample in samples if sample[0] > samples[-1][0] - 2 * WINDOW_MS]
