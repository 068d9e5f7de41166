"""Blue's positions in its inputs: it must have one in every partition that has records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.remaining import with_records
from kafka_rescale.operations.cutover.promotion import assert_counts, grown_remedy
from kafka_rescale.operations.expansion.rescale import Rescale

COMMIT_SECONDS = 60
"""Twice the default of ``commit.interval.ms`` with at-least-once."""


def await_positions(rescale: Rescale, plan: Plan) -> None:
    """Wait, before blue is stopped, until it has committed a position in every input partition that has records.

    If blue has just been started, it has no positions until its first commit.

    :raises UnsafeState: a position is missing for longer than a commit takes, or blue does not run. Or somebody
        has grown an input since the expansion was planned.
    """
    # It is asked again at the promotion. But a person who has to act learns it best while nothing is stopped.
    assert_counts(rescale, plan)
    found: dict[str, list[int]] = {}

    def all_read() -> bool:
        topics = [i.topic for i in plan.inputs]
        committed = rescale.admin.committed(plan.blue, {i.topic: i.current for i in plan.inputs})
        begins, ends = rescale.admin.begin_offsets(topics), rescale.admin.end_offsets(topics)
        unread = {
            i.topic: unread_partitions(rescale.connection, i, committed, begins[i.topic], ends[i.topic])
            for i in plan.inputs
        }
        found.clear()
        found.update((topic, partitions) for topic, partitions in unread.items() if partitions)
        return not found

    if not all_read():
        poll_until(
            all_read,
            seconds=COMMIT_SECONDS if rescale.lifecycle.is_running(blue(plan)) else 0,
            otherwise=lambda: never_read(*next(iter(found.items()))),
        )


def unread_partitions(
    connection: KafkaConnection,
    read: InputPlan,
    committed: PartitionOffsets,
    begins: Mapping[int, int],
    ends: Mapping[int, int],
) -> list[int]:
    """Return the partitions that blue has a task for, and that have records but no committed position.

    Aborted transactions and markers don't count as records. A consumer of committed records gets none of them, and
    so commits nothing behind them.

    :param begins: log starts of the input's partitions.
    :param ends: log ends of the same partitions.
    :raises UnsafeState: partitions that were added since the expansion was planned have records. Blue dies of
        such a growth and never reads them, so asking for positions there would help nobody.
    :raises Outage: the broker did not answer.
    """
    known = range(read.earlier or len(ends))
    unread = [p for p in known if p not in committed.get(read.topic, {})]
    found = with_records(connection, {(read.topic, p): (begins[p], ends[p]) for p in unread})
    lacking = sorted(p for _, p in found)
    if added := [p for p in lacking if p >= read.current]:
        raise UnsafeState(
            f"input topic {read.topic!r}",
            found=f"{len(ends)} partitions, and records in those that were added: {added}",
            expected=f"{read.current} as when the expansion was planned",
            remedy=grown_remedy(len(ends)),
        )
    return lacking


def never_read(topic: str, partitions: Sequence[int]) -> UnsafeState:
    """Return the error about partitions without a position: where blue would begin in them is only a guess."""
    return UnsafeState(
        f"input {topic}",
        found=f"records but no committed offset in partitions {list(partitions)}",
        expected="every partition with records read and committed by the application",
        remedy="Let the application process the whole input once, or commit its offsets explicitly.",
    )
