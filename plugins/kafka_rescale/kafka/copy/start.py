"""The offset at which the copy of a unit goes on, or the reason why it can't."""

from __future__ import annotations

from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import MoveKind
from kafka_rescale.kafka.copy.marks import RESETTING, SEEDING, Mark, Position
from kafka_rescale.kafka.copy.settings import StaleCopy
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.reading.source_rules import SourceRules

_RUNNING = "Delete nothing of green: it runs, and the new topic is its input."
_GROUP = "the bridge's group (`kafka-consumer-groups.sh --reset-offsets`)"
_IN_PLACE = (
    "Delete nothing: the application has no other copy of this topic. Let it stay stopped, and wake its owner, "
    "who has to find out what is missing."
)


def start_of(
    unit: CopyUnit, committed: Position | None, log: LogRange, rules: SourceRules, now_ms: int
) -> Position:
    """Return where to go on.

    :param committed: the position that the copy group has committed; None begins at the log start.
    :raises UnsafeState: the source was truncated or recreated, or has lost records although none may expire.
    :raises StaleCopy: the copy may lack tombstones, or the target was being emptied or seeded.
    """
    if committed is None and not unit.is_changelog:
        raise UnsafeState(
            f"copy of {unit}",
            found="no position",
            expected="the offset that blue has processed: records before it are no longer in flight",
            remedy="Start the catch_up job again: it prepares the move of records in flight.",
        )
    if committed is None:
        return Position(log.begin, Mark(as_of_ms=now_ms))
    offset = checked_offset(unit, committed.offset, log, rules)
    if committed.mark.state in {RESETTING, SEEDING}:
        raise StaleCopy(f"copy of {unit}", state=committed.mark.state)
    age, allowed = now_ms - committed.mark.as_of_ms, rules.tombstone_ms
    if allowed is not None and age > allowed:
        raise StaleCopy(f"copy of {unit}", age, allowed)
    return Position(offset, committed.mark)


def checked_offset(unit: CopyUnit, offset: int, log: LogRange, rules: SourceRules) -> int:
    """Return the offset to read from; it is the log start if the records before it have expired.

    :raises UnsafeState: the log can't be the log that was read before.
    """
    if offset > log.end:
        raise truncated(unit, offset, log.end)
    if offset >= log.begin:
        return offset
    if rules.expires and unit.is_changelog:
        return log.begin
    raise UnsafeState(
        f"topic {unit.move.source} partition {unit.partition}",
        found=f"log start {log.begin}, beyond the position {offset} of its copy",
        expected="every record until it has been copied",
        remedy=_after_loss(unit, log.begin),
    )


def truncated(unit: CopyUnit, offset: int, end: int | None = None) -> UnsafeState:
    """Return the error about a log that has lost records that were read.

    A copy then has records that its source lacks, and may be made anew. Behind a bridge, green runs on what was
    carried on. In place there is no copy that could be made anew.

    :param end: None if only a broker's epochs tell it: the log may have grown past the position again.
    """
    found = f"a log that was cut below the position {offset} of its copy"
    return UnsafeState(
        f"topic {unit.move.source} partition {unit.partition}",
        found=found if end is None else f"end {end}, below the position {offset} of its copy",
        expected="a log that only grows",
        remedy=f"It was truncated or recreated. {_after_truncation(unit)}",
    )


def _after_loss(unit: CopyUnit, begin: int) -> str:
    if unit.move.is_in_place:
        return f"Records were deleted. {_IN_PLACE}"
    if unit.move.kind is MoveKind.INPUT:
        return (
            "Retention was faster than the bridge: records were deleted before they were carried on, and are "
            f"lost. Raise the retention of {unit.move.source}. {_RUNNING} To go on without these records, commit "
            f"{begin} to {_GROUP}, and run the bridge again."
        )
    return "Records were deleted. Find out why, and whether the state is whole, before running again."


def _after_truncation(unit: CopyUnit) -> str:
    if unit.move.is_in_place:
        return _IN_PLACE
    if unit.move.kind is MoveKind.INPUT:
        return (
            f"{_RUNNING} Commit the offset of the first record that {unit.move.target} does not have (the log "
            f"start if the topic was made anew) to {_GROUP}, and run the bridge again. Records that were gone "
            "before they were carried on are lost."
        )
    return (
        "Delete the green topics and the consumer group of the copy, make sure that the state is whole, then run "
        "again."
    )
