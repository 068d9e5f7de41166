"""Waiting until a bridge has copied all records that the old topics held at a moment: then a producer may move.

While other producers still write, "0 behind" may never show. But when a producer asks, the records that it has
flushed lie below the topics' ends at that moment, and the bridge passes these ends.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, InvalidInput, Refused, TimedOut
from kafka_rescale.core.expansion.bridge_progress import AT_WORK, JOB, Left, with_progress
from kafka_rescale.kafka.admin.calls import SETTLE_SECONDS
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import again_after_outage, now_ms, poll_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.bridging import live_progress

TELL_SECONDS = 5.0
LOOK_SECONDS = 1.0

Look = tuple[ControlState, list[PartitionProgress]]


@dataclass(frozen=True)
class Passed:
    """The result of the wait.

    :param ends: ends of the old topics when the wait began (exclusive), open transactions included.
    :param records: number of offsets below these ends that had not been copied then.
    :param successors: the new topic of each old topic.
    """

    ends: PartitionOffsets
    records: int
    successors: dict[str, str]


def wait_until_bridged(
    application_id: str, connection: KafkaConnection, *, topic: str, seconds: float, say: Callable[[str], None]
) -> Passed:
    """Return once the bridge has passed the ends that the old topics have now.

    :param topic: the only old topic to wait for; empty for all of them.
    :param seconds: how long to wait at most.
    :param say: gets the number of records that are left, every few seconds.
    :raises InvalidInput: no bridge copies that topic.
    :raises Refused: the expansion has not been promoted, so its new topics must not get records yet.
    :raises Outage: the bridge has not passed these ends in time, or brokers don't know all partitions.
    """

    def look() -> Look:
        state = ControlTopic(connection, application_id).read()
        _bridged(state.bridging, application_id, topic)
        return state, live_progress(connection, state)

    state, progress = _whole(look, topic)
    successors = _bridged(state.bridging, application_id, topic)
    ends = _ends(progress, successors)
    first = left = Left.of(ends, progress)
    told = time.monotonic()
    say(_told(left, state, progress))

    def passed() -> bool:
        nonlocal told, left
        if left.is_passed:
            return True
        state, progress = again_after_outage(look)
        left = Left.of(ends, progress, first.total)
        if left.is_passed or time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            say(_told(left, state, progress))
        return left.is_passed

    poll_until(
        passed,
        seconds=seconds,
        longest_pause=LOOK_SECONDS,
        otherwise=lambda: TimedOut(
            f"the bridge of {application_id} to carry on everything that its old topics held ({left})",
            seconds,
            f"Look at the last run of `bridge_{application_id}`, and move no producer before it has done this.",
        ),
    )
    return Passed(ends, first.records, successors)


def _whole(look: Callable[[], Look], topic: str) -> Look:
    """Return the first look that has all partitions of the bridge.

    A broker that has just started may know fewer. The records in the others would not be waited for. A topic that
    was deleted has none.

    :param topic: the only old topic that counts; empty for all of them.
    :raises ClusterOutage: brokers don't know all partitions in time.
    """
    hidden: list[str] = []

    def whole() -> Look | None:
        state, progress = again_after_outage(look)
        journal = state.bridging
        assert journal is not None
        known = Bridge.of(journal.plan, state.bridge_of(journal)).widened(journal.plan.bridges)
        counts = Counter(each.topic for each in progress)
        hidden[:] = [
            f"{counts[m.source]} of {m.source_partitions} partitions of {m.source}"
            for m in known
            if topic in {"", m.source} and 0 < counts[m.source] < m.source_partitions
        ]
        return None if hidden else (state, progress)

    found = poll_until(
        whole,
        seconds=SETTLE_SECONDS,
        otherwise=lambda: ClusterOutage(
            "old topics",
            found=f"brokers that know only {', '.join(hidden)}",
            expected="all partitions that the bridge carries on",
            remedy="Run again when the brokers are up, and move no producer before. If somebody has made the "
            "topic anew, look at the last run of the bridge.",
        ),
    )
    assert found is not None
    return found


def _told(left: Left, state: ControlState, progress: Sequence[PartitionProgress]) -> str:
    result = with_progress(state, progress, now_ms()).results.get(JOB)
    if left.is_passed or result is None or result.state in AT_WORK:
        return str(left)
    return f"{left}; the bridge is NOT AT WORK: {result.detail or result.state}"


def _ends(progress: Sequence[PartitionProgress], topics: Collection[str]) -> PartitionOffsets:
    ends: PartitionOffsets = {topic: {} for topic in topics}
    for each in progress:
        if each.topic in ends:
            ends[each.topic][each.partition] = each.end
    return ends


def _bridged(journal: Journal | None, application_id: str, topic: str) -> dict[str, str]:
    """Return the old topics to wait for, with their new topics."""
    found = {m.source: m.target for m in journal.plan.bridges} if journal is not None else {}
    if not found or (topic and topic not in found):
        raise InvalidInput(
            f"topic {topic!r}" if found else f"application {application_id!r}",
            found="no bridge that carries it on" if found else "no expansion with a `repartitioned` input",
            expected=" or ".join(sorted(found)) or "a bridge",
            remedy="Name the old topic, which its producers write to now."
            if found
            else "There is nothing to wait for: the application's inputs keep their topics.",
        )
    assert journal is not None
    if not journal.is_promoted:
        raise Refused(
            f"application {application_id!r}",
            found=f"an expansion in phase {journal.told}",
            expected="an expansion that has been promoted: until then nothing may be written to "
            f"{', '.join(sorted(found.values()))}",
            remedy="Let the producers write to the old topic, and ask again after the cutover.",
        )
    return {topic: found[topic]} if topic else found
