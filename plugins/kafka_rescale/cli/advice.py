"""What ``plan --recommend`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.formats.samples import shown
from kafka_rescale.core.plan.sizing import Advice, Candidate


def with_advice(plan: Document, advice: Sequence[Advice]) -> Document:
    """Return one document: the recommendation first, then the plan that was made for it."""
    lines = [_line(each) for each in advice]
    data = {"recommendation": [_data(each) for each in advice], **plan.data}
    tables = [table for each in advice for table in (_counts(each), _heaviest(each))]
    return replace(plan, data=data, text="\n".join([*lines, plan.text]).rstrip(), tables=(*tables, *plan.tables))


def _line(advice: Advice) -> str:
    then = advice.then.partitions
    change = "stay at" if then == advice.now.partitions else f"from {advice.now.partitions} to"
    kept = "" if advice.follows or then == advice.now.partitions else ". No target changes its count, as declared"
    return f"{advice.topic}: {change} {then} partitions; {advice.reason}{kept}."


def _counts(advice: Advice) -> Rows:
    header = ("partitions", "records/s of the busiest", "its share", "without a sampled key")
    return Rows(f"Counts of {advice.topic}, as sampled", header, [_row(each) for each in advice.candidates])


def _row(candidate: Candidate) -> tuple[object, ...]:
    return (candidate.partitions, f"{candidate.busiest:.1f}", f"{candidate.share:.1%}", candidate.idle)


def _heaviest(advice: Advice) -> Rows:
    rows = [(shown(key), f"{share:.1%}") for key, share in advice.heaviest]
    return Rows(f"Heaviest keys of {advice.topic}, as sampled", ("key", "share of the records"), rows)


def _data(advice: Advice) -> dict[str, object]:
    return {
        "topic": advice.topic,
        "reason": advice.reason,
        "capacity": advice.capacity,
        "partitions": advice.then.partitions,
        "follows": advice.follows,
        "candidates": [asdict(each) for each in advice.candidates],
        "heaviest": [{"key": shown(key), "share": share} for key, share in advice.heaviest],
    }
