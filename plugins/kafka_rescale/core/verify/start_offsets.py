"""Did green go on from where blue stopped?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.journal import Captured, PartitionOffsets
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle


def input_starts(inputs: tuple[InputPlan, ...], stopped: PartitionOffsets) -> PartitionOffsets:
    """Return the offsets that green starts from: where blue stopped; 0 in new partitions and in successors.

    :param stopped: blue's committed offsets when it was gone.
    """
    return {
        i.green_topic: {p: 0 if i.successor else stopped[i.topic].get(p, 0) for p in range(i.target)}
        for i in inputs
    }


def carried_starts(moves: tuple[Move, ...], captured: Captured) -> PartitionOffsets:
    """Return the offsets in repartition topics that an application starts from after a growth in place.

    The records in flight were written again behind the former ends of the partitions. If a topic did not grow,
    they are in their old place.

    :param moves: the moves of repartition topics.
    """
    return {
        m.target: {
            p: captured.in_flight[m.source].get(p, (0, 0))[1 if m.grows else 0] for p in range(m.target_partitions)
        }
        for m in moves
    }


def check_start_offsets(
    inputs: tuple[InputPlan, ...],
    *,
    stopped: PartitionOffsets,
    started: PartitionOffsets,
    committed: PartitionOffsets,
) -> tuple[KeyFinding, ...]:
    """Return the partitions of external inputs where green didn't go on from where blue stopped.

    :param stopped: blue's committed offsets when it was gone; a partition without an offset was never read: 0.
    :param started: the offsets that green was given, as the journal recorded them.
    :param committed: green's committed offsets now; they may only have advanced.
    """
    return tuple(
        KeyFinding(oracle=Oracle.START_OFFSETS, subject=f"{i.green_topic}-{p}", detail=problem)
        for i in inputs
        for p in range(i.target)
        for problem in _start_problems(
            # The bridge copies from where blue stopped into a topic that green reads from its beginning.
            expected=0 if i.successor else stopped.get(i.topic, {}).get(p, 0),
            started=started.get(i.green_topic, {}).get(p),
            committed=committed.get(i.green_topic, {}).get(p),
        )
    )


def _start_problems(*, expected: int, started: int | None, committed: int | None) -> Iterator[str]:
    if started is None:
        yield f"green was given no offset; it had to start at {expected}"
    elif started != expected:
        skipped = started - expected
        consequence = f"{skipped} offsets skipped" if skipped > 0 else f"{-skipped} offsets read twice"
        yield f"green started at {started} instead of {expected}: {consequence}"
    if committed is None:
        yield f"green has no committed offset; it started at {expected}"
    elif committed < expected:
        yield f"green's committed offset is {committed}, below its start at {expected}"
