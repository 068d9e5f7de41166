"""Bring blue to a stop and prove that it is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.journal import Captured, PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import wait_until, within
from kafka_rescale.kafka.reading.remaining import with_records
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.input_positions import never_read, unread_partitions
from kafka_rescale.operations.expansion.rescale import Rescale

log = logging.getLogger(__name__)


def drain(rescale: Rescale, plan: Plan, seconds: float) -> None:
    """Wait until blue has processed every record of the paused inputs that grow.

    After the growth an old partition belongs to another set of keys, so no unprocessed record may be left in it.
    Transaction markers at the end of the log are no records, so this does not wait for them. It does wait for open
    transactions, because they hide the records behind them.

    If blue writes such an input itself, it fills the input from the topics ahead of it. As long as blue runs, the
    input and these topics have to be processed to their ends at the same time: what blue reads from them before it
    stops still comes to the input.

    :raises Outage: a transaction stays open; the error names it.
    """
    grown = [i.topic for i in plan.inputs if i.policy is InputPolicy.PAUSED and i.target != i.current]
    if not grown:
        return
    ahead = _ahead_of_own_inputs(rescale, plan, grown)
    if ahead and not rescale.lifecycle.is_running(blue(plan)):
        ahead = []
    topics = list(dict.fromkeys([*grown, *ahead]))
    left = within(seconds)

    def drained() -> bool:
        # The order matters, because the application may write to one of the topics itself. The ends are read after
        # the committed positions, once its transactions are complete. So everything that it wrote before it
        # committed these positions lies below the ends.
        committed = rescale.admin.committed(plan.blue)
        wait_until_complete(rescale.admin, topics, seconds=max(0.0, left()))
        ends = rescale.admin.end_offsets(topics)
        ranges = {
            (topic, partition): (committed.get(topic, {}).get(partition), end)
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
        }
        return next(with_records(rescale.connection, ranges), None) is None

    wait_until(
        drained,
        seconds=seconds,
        what=f"inputs {', '.join(topics)} to be processed to their ends by {plan.blue}",
        remedy="Producers may still be writing, or the application may be too far behind to drain in a pause. If "
        "the application is stopped, start it, and let it run until it has processed these inputs.",
    )


def _ahead_of_own_inputs(rescale: Rescale, plan: Plan, grown: Collection[str]) -> list[str]:
    """Return the topics from which blue fills the inputs that it writes itself: other inputs and repartitions."""
    topology = topology_of(rescale.application)
    names = blue_names(rescale.application, plan.blue)
    full = {i.declared: i.topic for i in plan.inputs} | {t: names.repartition(t) for t in topology.repartitions}
    ahead = [t for i in plan.inputs if i.topic in grown for t in topology.upstream_of(i.declared)]
    return [full[topic] for topic in ahead if topic in full]


def prove_gone(rescale: Rescale, plan: Plan, seconds: float) -> Captured:
    """Prove that blue has stopped for good and return what it left.

    The proof has four parts:

    1. The deployment says that blue is stopped.
    2. Blue's group has no members. Dead members are removed first, because the group keeps them until their
       session times out: in the classic protocol after a clean close, in the streams protocol if they were killed.
    3. No transaction is open on blue's internal topics.
    4. Offsets and ends do not move between two readings, and the group is still empty after each.

    :raises UnsafeState: an instance of blue is still alive.
    :raises Outage: a transaction stays open; the error names it.
    """
    if rescale.lifecycle.is_running(blue(plan)):
        raise UnsafeState(
            f"application {plan.blue}",
            found="it runs after `stop` has returned",
            expected="every instance gone",
            remedy="Mend the `stop` command: it must return only when all instances have ended.",
        )
    rescale.admin.remove_members(plan.blue)
    internal = [m.source for m in plan.moves]
    first = _left_behind(rescale, plan, lambda: wait_until_complete(rescale.admin, internal, seconds=seconds))
    _assert_no_members(rescale, plan)
    second = _left_behind(rescale, plan, lambda: rescale.admin.end_offsets(internal))
    _assert_no_members(rescale, plan)
    if first != second:
        raise UnsafeState(
            f"application {plan.blue}",
            found="offsets or ends that still move",
            expected="offsets and ends that stand still once it has stopped",
            remedy="An instance outside the `stop` command's reach is alive; find it before trying again.",
        )
    _tell_expired(plan, second)
    return second.captured


@dataclass(frozen=True)
class _LeftBehind:
    """What blue has left, and the offsets that its group has committed."""

    captured: Captured
    committed: PartitionOffsets


def _assert_no_members(rescale: Rescale, plan: Plan) -> None:
    group = rescale.admin.describe_group(plan.blue)
    if group.is_live:
        raise UnsafeState(
            f"group {plan.blue}",
            found=f"members {', '.join(group.members)}",
            expected="no members after `stop`",
            remedy="An instance outside the `stop` command's reach is alive; find it before trying again.",
        )


def _left_behind(rescale: Rescale, plan: Plan, ends_of_internal: Callable[[], PartitionOffsets]) -> _LeftBehind:
    """Return what blue has left.

    The brokers are asked side by side. Whether one of the answers was too early is seen by the next reading.

    :param ends_of_internal: returns the ends of its internal topics.
    """
    inputs, repartitions = [i.topic for i in plan.inputs], [m.source for m in plan.repartitions]
    counts = {i.topic: i.current for i in plan.inputs} | {m.source: m.source_partitions for m in plan.repartitions}
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(rescale.admin.committed, plan.blue, counts)
        ends = ends_of_internal()
        begins = rescale.admin.begin_offsets([*inputs, *repartitions])
        input_ends = rescale.admin.end_offsets(inputs)
    committed = asked.result()
    captured = Captured(
        committed={
            i.topic: _fence(rescale, i, committed, begins[i.topic], input_ends[i.topic]) for i in plan.inputs
        },
        changelog_ends={m.source: ends[m.source] for m in plan.changelogs},
        in_flight={
            topic: {
                p: (max(committed.get(topic, {}).get(p, 0), begins[topic][p]), end)
                for p, end in ends[topic].items()
            }
            for topic in repartitions
        },
    )
    return _LeftBehind(captured, committed)


def _fence(
    rescale: Rescale,
    read: InputPlan,
    committed: PartitionOffsets,
    begins: Mapping[int, int],
    ends: Mapping[int, int],
) -> dict[int, int]:
    """Return where blue stopped in every partition of an input.

    A partition in which blue has never committed is allowed only while it has no records: where blue would have
    begun to read depends on its ``auto.offset.reset``, and a guess could lose or double records. Partitions that
    were added by hand have no task in blue, so blue has read none of their records.

    Records that were deleted before blue read them are lost to both generations. Neither a bridge nor a consumer
    can begin below the log start. The fence is therefore never below it.

    :param begins: log starts of the input's partitions.
    :param ends: log ends of the same partitions.
    """
    topic = read.topic
    fence = {p: max(committed.get(topic, {}).get(p, begins[p]), begins[p]) for p in ends}
    if unread := unread_partitions(rescale.connection, read, committed, begins, ends):
        raise never_read(topic, unread)
    return fence


def _tell_expired(plan: Plan, left: _LeftBehind) -> None:
    """Log how many records were deleted unread: no cutover brings them back, and no later check finds the loss."""
    for topic, offsets in left.captured.committed.items():
        for partition, offset in offsets.items():
            if missed := offset - left.committed.get(topic, {}).get(partition, offset):
                lost = f"{missed} offsets of {topic}-{partition} were deleted before {plan.blue} had read them"
                log.warning("%s; %s goes on from the log start, %d", lost, plan.green, offset)
