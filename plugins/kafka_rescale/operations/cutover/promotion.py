"""What must hold when green is given the inputs. After that moment there is no way back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.misrouted import grown_by_key
from kafka_rescale.core.verify.start_offsets import input_starts
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.cutover.first_output import all_outputs_now
from kafka_rescale.operations.expansion.rescale import Rescale


def assert_promotable(rescale: Rescale, journal: Journal) -> None:
    """Check what may have changed since blue was proven gone.

    :raises UnsafeState: blue runs again, a producer was not held, or a topic isn't as it was planned.
    """
    assert_counts(rescale, journal.plan)
    assert_held(rescale, journal)
    assert_unused(rescale, journal.plan)
    _assert_still_gone(rescale, journal)


def green_offsets(
    rescale: Rescale, journal: Journal, seconds: float
) -> tuple[PartitionOffsets, dict[str, PartitionOffsets]]:
    """Return the log starts of green's topics, and what the journal keeps about green.

    That is the ends of its topics, those of the outputs, and the offsets that it starts from.

    :param seconds: how long the last transactions on these topics may take to end.
    """
    plan = journal.plan
    assert journal.captured is not None
    targets = [m.target for m in plan.moves]
    # The brokers may write a commit's markers after they have answered it. Until then the end is too low.
    ends = wait_until_complete(rescale.admin, targets, seconds=seconds, longest_pause=0.02)
    begins = rescale.admin.begin_offsets(targets)
    carried = {m.target: begins[m.target] for m in plan.repartitions}
    start = {**input_starts(plan.inputs, journal.captured.committed), **carried}
    return begins, {"green_ends": ends, "output_ends": all_outputs_now(rescale), "green_start": start}


def assert_counts(rescale: Rescale, plan: Plan) -> None:
    """Refuse inputs with more partitions than planned: they can't shrink, and green could never run on them.

    :raises UnsafeState: somebody has grown an input since.
    """
    inputs = {i.topic: i for i in plan.inputs}
    for topic, described in rescale.admin.existing_topics(inputs).items():
        planned = max(inputs[topic].current, 0 if inputs[topic].successor else inputs[topic].target)
        if described.partitions > planned:
            raise UnsafeState(
                f"input topic {topic!r}",
                found=f"{described.partitions} partitions",
                expected=f"{inputs[topic].current} as when the expansion was planned, or {planned} as it aims at",
                remedy=grown_remedy(described.partitions),
            )


def grown_remedy(count: int) -> str:
    """Return what to do about an input that somebody has grown since the expansion was planned.

    :param count: its number of partitions now.
    """
    return (
        "It was grown meanwhile. That ends a running Kafka Streams application, and the topic "
        f"can't shrink. Trigger the expansion again with a target that suits {count}."
    )


def _assert_still_gone(rescale: Rescale, journal: Journal) -> None:
    """Refuse if blue works again: green would process once more what blue processes from here on."""
    if signs := _signs_of_life(rescale, journal):
        raise UnsafeState(
            f"application {journal.plan.blue}",
            found=signs,
            expected="no start since it was proven gone",
            remedy="Find what has started it (a supervisor, an autoscaler, a deployment tool, a person), switch "
            "that off for the cutover, and trigger the expansion again.",
        )


def _signs_of_life(rescale: Rescale, journal: Journal) -> str:
    assert journal.captured is not None
    captured = journal.captured
    with ThreadPoolExecutor(2) as pool:
        # A command of the deployment, which may take as long as all the rest.
        is_alive = pool.submit(rescale.is_alive, blue(journal.plan))
        committed_now = pool.submit(rescale.admin.committed, journal.plan.blue)
        ends = rescale.admin.end_offsets(captured.ends)
    if is_alive.result():
        return "a running instance"
    if ends != captured.ends:
        return "new records in its internal topics"
    moved = captured.passed(committed_now.result())
    return f"offsets of {', '.join(moved)} that it has committed since" if moved else ""


def assert_held(rescale: Rescale, journal: Journal) -> None:
    """Check that the inputs that are about to grow have got no record since blue has stopped.

    :raises UnsafeState: a producer was not held. The old count has decided the partitions of its records.
    """
    assert journal.captured is not None
    for grown in grown_by_key(journal.plan):
        fence = journal.captured.committed[grown.topic]
        begins = rescale.admin.begin_offsets([grown.topic])[grown.topic]
        ends = rescale.admin.end_offsets([grown.topic])[grown.topic]
        last = rescale.admin.end_offsets([grown.topic], read_committed=False)[grown.topic]
        if hidden := [p for p in last if last[p] != ends.get(p)]:
            raise UnsafeState(
                f"input topic {grown.topic!r}",
                found=f"an open transaction, or one that has only just ended, in partition {hidden[0]}",
                expected="no transaction before the topic has grown: its producers are held",
                remedy="A producer outside the reach of `producers: stop` is alive, or died within a transaction: "
                "stop it too, and wait until its transaction.timeout.ms has passed.",
            )
        ranges = {p: (max(fence.get(p, 0), begins[p]), end) for p, end in ends.items()}
        # Green can't read what retention deletes meanwhile. Later records are still found.
        late = next(read_ranges(rescale.connection, grown.topic, ranges, may_be_deleted=True), None)
        if late is not None:
            raise UnsafeState(
                f"input topic {grown.topic!r}",
                found=f"a record behind the fence, in partition {late.partition()} at offset {late.offset()}",
                expected="no record there before the topic has grown: its producers are held",
                remedy="A producer outside the reach of `producers: stop` is alive: stop it too, or declare "
                "`policy: repartitioned`.",
            )


def assert_unused(rescale: Rescale, plan: Plan) -> None:
    """Check that every successor of an input is empty: its first records have to be those that the bridge copies.

    :raises UnsafeState: a producer, or the bridge of another application, has written to a successor.
    """
    topics = [m.target for m in plan.bridges]
    for topic, ends in rescale.admin.end_offsets(topics, read_committed=False).items():
        if any(ends.values()):
            raise UnsafeState(
                f"topic {topic!r}",
                found=f"records before the promotion (ends {ends})",
                expected="an empty topic",
                remedy="A producer has moved too early, or the topic belongs to another application. In the first "
                "case, let the producer go back to the old topic, copy its records there, delete the topic, and "
                "trigger the expansion again. In the second, leave the topic as it is, and give another "
                "`successor:` after the rollback.",
            )
