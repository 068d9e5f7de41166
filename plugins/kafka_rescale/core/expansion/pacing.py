"""How fast may a job copy now? Half as fast after each sign of harm, and steadily faster without one (AIMD).

It does not copy at all while a person has paused it, or a disk is too full (``pacing_disk``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.control.pace import DiskRest, Pace, Rate

SETTLING_MS = 10_000
"""After the rate was halved, how long to wait for the effect before it is halved again."""
RAMP_MS = 60_000
"""How long the rate takes from nothing to its limit, without a sign of harm."""
FLOOR = 32
"""The rate never falls below this part of its limit, so that the copy ends."""
THROTTLED = 0.1
"""If brokers make the copy wait for less than this part of the time, that is no sign of harm."""
SHOWN = 3


@dataclass(frozen=True)
class Readings:
    """What a driver has seen since its last decision. None means that it could not read the value.

    :param at_ms: wall clock.
    :param seconds: time since the readings before.
    :param copied: bytes that were copied in that time.
    :param throttled_ms: how long brokers have made the tasks wait, all tasks together.
    :param under_replicated: partitions of the copy that have fewer replicas in sync than replicas.
    :param input_lag: a sentence if the lag of the application's own inputs grows; empty if it doesn't.
    :param disk: why the job has to rest; None if no log dir is known to be too full.
    :param untold: brokers whose free space can't be read, with the reason.
    """

    at_ms: int
    seconds: float = 0.0
    copied: int | None = None
    throttled_ms: int | None = None
    under_replicated: Sequence[str] | None = None
    input_lag: str | None = None
    disk: DiskRest | None = None
    untold: tuple[str, ...] = ()


def first_rate(pace: Pace, run: str, attempt: int, tasks: int, at_ms: int, known: Rate | None = None) -> Rate:
    """Return the rate with which an attempt at a job begins: its limit, or the rate of its last round.

    :param tasks: how many tasks share it.
    :param known: the rate that the job had last, of whatever attempt.
    """
    rate = Rate(run=run, attempt=attempt, tasks=max(1, tasks), at_ms=at_ms)
    if known is None or (known.run, known.attempt) != (run, attempt):
        return _within(pace, rate, pace.limit)
    rate = rate.model_copy(update={"disk": known.disk})
    if not known.slowed_by:
        return _within(pace, rate, pace.limit)
    slowed = {"slowed_by": known.slowed_by, "slowed_ms": known.slowed_ms}
    return _within(pace, rate.model_copy(update=slowed), known.bytes_per_second)


def next_rate(pace: Pace, before: Rate, seen: Readings, tasks: int) -> Rate:
    """Return the rate from now on.

    Without a limit the rate is not adapted, and in a pause or a rest it stays as it was. A missing reading is a
    sign neither of harm nor of health: the rate says that the reading is unknown.

    :param before: the rate so far, of the same attempt.
    :param tasks: how many tasks share it now.
    """
    room = {"disk": seen.disk, "unknown": tuple(_unknown_space(seen))}
    known = before.model_copy(update={"at_ms": seen.at_ms, "tasks": max(1, tasks), **room})
    if pace.limit is None or before.bytes_per_second is None or pace.paused is not None or seen.disk is not None:
        return _within(pace, known, before.bytes_per_second)
    known = known.model_copy(update={"unknown": (*_unknown(seen), *known.unknown)})
    if pace.limit != before.limit and not before.slowed_by:
        return _within(pace, known, pace.limit)
    if harm := harm_of(seen, known.tasks):
        return _slowed(pace, known, seen, harm)
    if seen.at_ms - before.slowed_ms < SETTLING_MS and before.slowed_by:
        return _within(pace, known, before.bytes_per_second)
    faster = before.bytes_per_second + pace.limit * seen.seconds * 1000 / RAMP_MS
    return _within(pace, known, round(faster))


def harm_of(seen: Readings, tasks: int) -> str:
    """Return the first sign of harm in a sentence; empty without one."""
    if seen.throttled_ms is not None and seen.throttled_ms > THROTTLED * seen.seconds * 1000 * tasks:
        waited = seen.throttled_ms / 1000
        return f"brokers made its clients wait for {waited:.1f} s in the last {seen.seconds:.0f} s (a quota)"
    if seen.under_replicated:
        count, first = len(seen.under_replicated), ", ".join(seen.under_replicated[:SHOWN])
        more = ", …" if count > SHOWN else ""
        noun = "partition has" if count == 1 else "partitions have"
        return f"{count} {noun} fewer replicas in sync than replicas: {first}{more}"
    return seen.input_lag or ""


def _slowed(pace: Pace, rate: Rate, seen: Readings, harm: str) -> Rate:
    assert rate.bytes_per_second is not None
    if seen.at_ms - rate.slowed_ms < SETTLING_MS:
        return _within(pace, rate, rate.bytes_per_second)
    present: float = rate.bytes_per_second
    if seen.copied and seen.seconds:
        # If the copy does not reach its rate, half of that rate might change nothing.
        present = min(present, seen.copied / seen.seconds)
    slowed = rate.model_copy(update={"slowed_by": harm, "slowed_ms": seen.at_ms})
    return _within(pace, slowed, round(present / 2))


def _within(pace: Pace, rate: Rate, wanted: int | None) -> Rate:
    """Return the rate between its floor and its limit."""
    limit, found = pace.limit, None
    if limit is not None:
        found = max(1, limit // FLOOR, min(limit, wanted if wanted is not None else limit))
    reason = rate.slowed_by if found is not None and limit is not None and found < limit else ""
    changes = {
        "limit": limit,
        "bytes_per_second": found,
        "is_paused": pace.paused is not None or rate.disk is not None,
    }
    return rate.model_copy(update={**changes, "slowed_by": reason})


def _unknown(seen: Readings) -> Iterator[str]:
    if seen.throttled_ms is None:
        yield "whether brokers throttle"
    if seen.under_replicated is None:
        yield "replicas in sync"
    if seen.input_lag is None:
        yield "the application's input lag"


def _unknown_space(seen: Readings) -> Iterator[str]:
    yield from (f"the free space of {each}" for each in seen.untold)
