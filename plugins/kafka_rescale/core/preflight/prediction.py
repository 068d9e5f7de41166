"""What an expansion will take, as far as that is known before anything begins.

The pause is taken from the newest complete expansion of the same application; the pace from the newest that has
copied enough to tell. For a first expansion both are unknown: they depend on this application's records, on the
cores of Spark, and on how long its program takes to start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka_rescale.core.control.history import PastExpansion, newest_first
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.core.expansion.downtime import TOTAL, parts_of
from kafka_rescale.core.plan.disk_need import TopicNeed
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.disk import needs
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.preflight.slow_copies import slow_copy_messages
from kafka_rescale.core.values import moment, per_second, size

ENOUGH = 0.1
"""The least part of the predicted records that an expansion must have copied to tell a pace. An attempt that goes
on with copies that exist copies few, in the seconds that Spark takes to start."""


def predicted(situation: Situation) -> Prediction:
    """Return what is predicted for the expansion by this plan."""
    needed = needs(situation)
    past = next(_complete(situation), None)
    records, (pace, pace_of) = _records(situation), _pace(situation)
    copied = _copied_bytes(situation, needed)
    limit = _limit(situation)
    known = [
        amount / speed for amount, speed in ((records, pace), (copied, limit)) if amount is not None and speed
    ]
    return Prediction(
        written_bytes=sum(need.everywhere for need in needed) if needed else None,
        copied_bytes=copied,
        records=records,
        records_per_second=pace,
        pace_of=pace_of,
        limit=limit,
        copy_seconds=round(max(known), 1) if known else None,
        pause=dict(past.timings) if past else {},
    )


def prediction_messages(situation: Situation) -> Iterator[str]:
    """Yield the predictions, each with its assumptions."""
    journal = situation.control.journal
    if (journal is not None and journal.in_progress) or not changes_anything(situation):
        return
    said, past = predicted(situation), next(_complete(situation), None)
    if said.records is not None:
        on_disk = f" ({size(said.copied_bytes)} on disk)" if said.copied_bytes is not None else ""
        yield f"Copies: at most {said.records:,} records{on_disk}. {_duration(said)}"
        yield from slow_copy_messages(situation, said)
    if past is not None and TOTAL in said.pause:
        parts = ", ".join(f"{part.name} {part.seconds:.1f} s" for part in parts_of(said.pause))
        yield f"Pause: {said.pause[TOTAL]:.1f} s in {_of(past)} ({parts}). Expect about as much."
    else:
        yield "Pause: unknown, as no expansion of this application in this mode is complete yet."


def _duration(said: Prediction) -> str:
    # The limit counts keys and values uncompressed: records that are compressed on disk take longer than this.
    within = f"within the limit of {per_second(said.limit)}" if said.limit is not None else ""
    if said.records_per_second is None or said.copy_seconds is None:
        enough = "no expansion of this application in this mode that has copied enough to tell is complete yet"
        unknown = f"How long they take is unknown, as {enough}"
        return f"{unknown}; {within} at least {said.copy_seconds:,.0f} s." if said.copy_seconds else f"{unknown}."
    return (
        f"At {said.records_per_second:,.0f} records/s, the pace of {said.pace_of}{within and f', and {within}'}, "
        f"their bulk takes some {said.copy_seconds:,.0f} s."
    )


def _limit(situation: Situation) -> int | None:
    """Return the limit of the file, or the limit that a person has set for this plan."""
    of_plan = Pace.of(situation.plan.fingerprint, situation.control.pace)
    return of_plan.declared(situation.application.pacing).limit


def _complete(situation: Situation) -> Iterator[PastExpansion]:
    """Yield the complete expansions of the same mode, newest first: how long another mode takes says nothing."""
    past = newest_first(situation.control.history.values())
    return (each for each in past if each.is_complete and each.in_place == situation.is_in_place)


def _pace(situation: Situation) -> tuple[float | None, str]:
    """Return the records per second of the newest expansion that has copied enough, and which one that is."""
    for past in _complete(situation):
        records, seconds = past.restored
        expected = past.predicted.records if past.predicted else None
        if records and seconds and records >= ENOUGH * (expected or 0):
            return records / seconds, _of(past)
    return None, ""


def _copied_bytes(situation: Situation, needed: Sequence[TopicNeed]) -> int | None:
    """Return the bytes of all changelogs. Of a bridge's old topic and of records in flight, most is never read."""
    sources = {move.source for move in situation.plan.changelogs}
    found = [need.source_bytes for need in needed if need.source in sources]
    return sum(found) if found else None


def _records(situation: Situation) -> int | None:
    """Return the number of offsets in all changelogs, including offsets of markers and of removed records."""
    cluster = situation.cluster
    topics = {move.source for move in situation.plan.changelogs}
    ends = {at: end for at, end in cluster.ends.items() if at[0] in topics}
    return sum(end - cluster.begins.get(at, 0) for at, end in ends.items()) if ends else None


def _of(past: PastExpansion) -> str:
    return f"the expansion from {past.before} to {past.after} that ended at {moment(past.ended_ms)}"
