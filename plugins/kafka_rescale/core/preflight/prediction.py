"""What an expansion will take, as far as that is known before anything begins.

The pace and the pause are taken from the newest complete expansion of the same application. For a first expansion
both are unknown: they depend on this application's records, on Spark's cores, and on how long its program takes to
start.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.history import PastExpansion, newest_first
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.core.expansion.downtime import TOTAL, parts_of
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.disk import needs
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.preflight.slow_copies import slow_copy_messages
from kafka_rescale.core.values import moment, per_second, size


def predicted(situation: Situation) -> Prediction:
    """Return what is predicted for the expansion by this plan."""
    needed = needs(situation)
    past = _newest(situation)
    records, (before, seconds) = _records(situation), past.restored if past else (0, 0.0)
    pace = before / seconds if before and seconds else None
    copied = sum(need.source_bytes for need in needed) if needed else None
    limit = _limit(situation)
    known = [
        amount / speed for amount, speed in ((records, pace), (copied, limit)) if amount is not None and speed
    ]
    return Prediction(
        written_bytes=sum(need.everywhere for need in needed) if needed else None,
        copied_bytes=copied,
        records=records,
        records_per_second=pace,
        pace_of=_of(past) if past and pace else "",
        limit=limit,
        copy_seconds=round(max(known), 1) if known else None,
        pause=dict(past.timings) if past else {},
    )


def prediction_messages(situation: Situation) -> Iterator[str]:
    """Yield the predictions, each with its assumptions."""
    journal = situation.control.journal
    if (journal is not None and journal.in_progress) or not changes_anything(situation):
        return
    said, past = predicted(situation), _newest(situation)
    if said.records is not None:
        on_disk = f" ({size(said.copied_bytes)} on disk)" if said.copied_bytes is not None else ""
        yield f"Copies: at most {said.records:,} records{on_disk}. {_duration(said)}"
        yield from slow_copy_messages(situation, said)
    if past is not None and TOTAL in said.pause:
        parts = ", ".join(f"{part.name} {part.seconds:.1f} s" for part in parts_of(said.pause))
        yield f"Pause: {said.pause[TOTAL]:.1f} s in {_of(past)} ({parts}). Expect about as much."
    else:
        yield "Pause: unknown, as no expansion of this application is complete yet."


def _duration(said: Prediction) -> str:
    # The limit counts keys and values uncompressed: records that are compressed on disk take longer than this.
    within = f"within the limit of {per_second(said.limit)}" if said.limit is not None else ""
    if said.records_per_second is None or said.copy_seconds is None:
        unknown = "How long they take is unknown, as no expansion of this application with copies is complete yet"
        return f"{unknown}; {within} at least {said.copy_seconds:,.0f} s." if said.copy_seconds else f"{unknown}."
    return (
        f"At {said.records_per_second:,.0f} records/s, the pace of {said.pace_of}{within and f', and {within}'}, "
        f"their bulk takes some {said.copy_seconds:,.0f} s."
    )


def _limit(situation: Situation) -> int | None:
    """Return the limit of the file, or the limit that a person has set for this plan."""
    of_plan = Pace.of(situation.plan.fingerprint, situation.control.pace)
    return of_plan.declared(situation.application.pacing).limit


def _newest(situation: Situation) -> PastExpansion | None:
    """Return the newest complete expansion of the same mode: how long another mode takes says nothing here."""
    past = newest_first(situation.control.history.values())
    return next((each for each in past if each.is_complete and each.in_place == situation.is_in_place), None)


def _records(situation: Situation) -> int | None:
    """Return the number of offsets in all changelogs, including offsets of markers and of removed records."""
    cluster = situation.cluster
    topics = {move.source for move in situation.plan.changelogs}
    ends = {at: end for at, end in cluster.ends.items() if at[0] in topics}
    return sum(end - cluster.begins.get(at, 0) for at, end in ends.items()) if ends else None


def _of(past: PastExpansion) -> str:
    return f"the expansion from {past.before} to {past.after} that ended at {moment(past.ended_ms)}"
