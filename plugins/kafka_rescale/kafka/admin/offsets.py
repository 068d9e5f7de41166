"""Offsets: begins and ends of logs, and committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, RescaleError, UnsafeState
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.kafka.admin.calls import ATTEMPTS, SETTLE_SECONDS
from kafka_rescale.kafka.admin.topic_reader import ABSENT, TopicReader, not_known
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until

if TYPE_CHECKING:
    from kafka_rescale.kafka.admin.offset_lists import OffsetLists

PARTITIONS_AT_ONCE = 500
"""The most partitions in one request. librdkafka's time for a request grows faster than the number of partitions:
5,000 partitions took 0.15 s in one request and 0.06 s in ten requests."""

MANY_PARTITIONS = 1000
"""From so many on, a listing is asked for by one request for each leader first (``offset_lists``)."""

_LISTS: WeakKeyDictionary[KafkaConnection, OffsetLists] = WeakKeyDictionary()
"""By the connections of this process that have listed many partitions: a new client would cost what it saves."""

EARLIEST, LATEST = -2, -1
SPECS = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}
"""By the timestamps that stand for them in a request."""

NO_SUCH_RECORD = -1
"""What brokers answer if no record has a timestamp at or after the moment that is asked for."""


class OffsetAdmin(TopicReader):
    """The part of ``ClusterAdmin`` that is about offsets."""

    def begin_offsets(self, topics: Iterable[str]) -> PartitionOffsets:
        """Return the log start offsets of every partition.

        :raises ClusterOutage: for ``SETTLE_SECONDS``, brokers don't know one of the topics, or give no offset.
        """
        return self._list_offsets(topics, EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def end_offsets(
        self, topics: Iterable[str], read_committed: bool = True, *, if_present: bool = False
    ) -> PartitionOffsets:
        """Return the end offsets (exclusive) of every partition.

        :param read_committed: return the ends that a ``read_committed`` reader sees. If a transaction is open in a
            partition, this reader sees only the records before the first open transaction.
        :param if_present: leave out topics that the broker doesn't know, instead of raising an error. A broker
            that has just started may not know a topic that exists. So a caller must not conclude that a missing
            topic was lost, or that it has no records: see ``absent_of``.
        :raises ClusterOutage: for ``SETTLE_SECONDS``, brokers don't know one of the topics, or give no offset.
        """
        isolation = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        return self._list_offsets(topics, LATEST, isolation, if_present)

    def ends_of(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the end offsets (exclusive) of some partitions, as a ``read_committed`` reader sees them.

        A partition for which brokers give no offset is left out. The caller may ask for it again.
        """
        wanted = [TopicPartition(*each) for each in partitions]
        found = self._answers(wanted, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        return {(at.topic, at.partition): info.offset for at, info in found.items() if info.offset >= 0}

    def offsets_at(self, topics: Iterable[str], at_ms: int) -> PartitionOffsets:
        """Return, for every partition, the offset of the first record whose timestamp is at or after a moment.

        If a partition has no such record, this returns its end offset.

        :param at_ms: the moment, in ms since the epoch. Timestamps need not be in order: a record behind the
            returned offset may have an earlier timestamp.
        """
        names = list(topics)
        found = self._list_offsets(names, at_ms, IsolationLevel.READ_COMMITTED, least=NO_SUCH_RECORD)
        ends = self.end_offsets(names)
        return {
            topic: {p: ends[topic][p] if offset < 0 else offset for p, offset in by_partition.items()}
            for topic, by_partition in found.items()
        }

    def committed(self, group: str, counts: Mapping[str, int] | None = None) -> PartitionOffsets:
        """Return the committed offsets (next to read) of a group, once no transaction on them is open.

        :param counts: number of partitions per topic to ask for. If a partition is then missing in the answer, no
            offset was ever committed for it. Without ``counts``, brokers also leave out a partition whose very
            first commit is still being completed.
        :raises Outage: the coordinator doesn't answer, or a transaction on the offsets stays open.
        """
        # Imported here, and so in the methods below: the import of kafka-python takes longer than that of all our
        # own modules, and tasks of Spark don't need it.
        from kafka_rescale.kafka.admin.group_metadata import offsets_and_metadata

        wanted = [(topic, p) for topic, count in (counts or {}).items() for p in range(count)]
        offsets: PartitionOffsets = {}
        for (topic, partition), known in offsets_and_metadata(self.connection, group, wanted or None).items():
            offsets.setdefault(topic, {})[partition] = known.offset
        return offsets

    def committed_metadata(self, group: str) -> dict[str, dict[int, str]]:
        """Return the metadata that a group has committed beside its offsets: topic → partition → text.

        :raises Outage: the coordinator doesn't answer.
        """
        from kafka_rescale.kafka.admin.group_metadata import committed_metadata

        return committed_metadata(self.connection, group)

    def commit(self, group: str, offsets: PartitionOffsets, metadata: OffsetTexts | None = None) -> None:
        """Set the committed offsets of a group without members.

        :param offsets: topic → partition → next offset to read. The group's other offsets stay as they are.
        :param metadata: topic → partition → text, for the offsets that have metadata.
        :raises UnsafeState: the group has members, the brokers refuse a partition, or another process commits.
        :raises Outage: a coordinator doesn't know a partition, or doesn't answer, for ``SETTLE_SECONDS``.
        """
        from kafka_rescale.kafka.admin.group_metadata import commit_offsets

        found: PartitionOffsets = {}
        for _ in range(ATTEMPTS):
            commit_offsets(self.connection, group, offsets, metadata or {})
            found = self.committed(group)
            if all(found.get(t, {}).get(p) == offset for t, of in offsets.items() for p, offset in of.items()):
                return
        raise UnsafeState(
            f"offsets of group {group!r}",
            found=f"{found}",
            expected=f"{offsets}",
            remedy="Another process commits to this group: stop it, then run again.",
        )

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets, if it exists.

        :raises UnsafeState: the group has members.
        :raises Outage: its coordinator doesn't answer.
        """
        from kafka_rescale.kafka.admin.group_members import delete_group

        delete_group(self.connection, group)

    def _list_offsets(
        self,
        topics: Iterable[str],
        at: int,
        isolation: IsolationLevel,
        if_present: bool = False,
        least: int = 0,
    ) -> PartitionOffsets:
        names = set(topics)
        if (listed := self._listed(names, at, isolation)) is not None:
            return listed
        found: dict[TopicPartition, ListOffsetsResultInfo] = {}
        unknown: set[str] = set()
        spec = SPECS.get(at) or OffsetSpec.for_timestamp(at)

        def complete() -> bool:
            counts = self.partition_counts(names)
            unknown.clear()
            unknown.update(() if if_present else names - counts.keys())
            found.clear()
            if not unknown:
                asked = [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]
                found.update(self._answers(asked, spec, isolation))
            is_complete = not unknown and not _unanswered(found, least)
            if not is_complete:
                self._ask_another()
            return is_complete

        def outage() -> RescaleError:
            return not_known(unknown) if unknown else _without_offset(_unanswered(found, least))

        poll_until(complete, seconds=SETTLE_SECONDS, otherwise=outage)
        if len(found) >= MANY_PARTITIONS and self.connection not in _LISTS:
            from kafka_rescale.kafka.admin.offset_lists import OffsetLists

            _LISTS[self.connection] = OffsetLists()
        offsets: PartitionOffsets = {}
        for partition, result in sorted(found.items(), key=lambda item: (item[0].topic, item[0].partition)):
            offsets.setdefault(partition.topic, {})[partition.partition] = result.offset
        return offsets

    def _listed(self, names: set[str], at: int, isolation: IsolationLevel) -> PartitionOffsets | None:
        """Return a listing by one request for each leader, once there were many partitions; None without one."""
        lists = _LISTS.get(self.connection)
        if lists is None or at not in SPECS or not names:
            return None
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        return lists.ask(self.connection, names, at, read_committed=is_committed)

    def _answers(
        self, wanted: Sequence[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        def ask(client: AdminClient, seconds: float) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
            asked: dict[TopicPartition, Future[ListOffsetsResultInfo]] = {}
            for begin in range(0, len(wanted), PARTITIONS_AT_ONCE):
                some = dict.fromkeys(wanted[begin : begin + PARTITIONS_AT_ONCE], spec)
                asked |= client.list_offsets(some, isolation_level=isolation, request_timeout=seconds)
            return asked

        # librdkafka answers _NOENT for a partition that has no leader at the moment.
        return self._read(ask, "offsets of", again=(*ABSENT, KafkaError._NOENT)) if wanted else {}


def _without_offset(partitions: list[TopicPartition]) -> ClusterOutage:
    return ClusterOutage(
        f"offsets of {', '.join(f'{t.topic}-{t.partition}' for t in partitions)}",
        found="an answer without an offset",
        expected="an offset of each",
        remedy="A broker is starting: run again when it is up.",
    )


def _unanswered(found: Mapping[TopicPartition, ListOffsetsResultInfo], least: int) -> list[TopicPartition]:
    """Return the partitions without an offset.

    While a broker comes back, confluent-kafka 2.16 now and then answers -1001 without an error (seen: 5 of 1,500
    calls over 22 restarts). After a leader had died, one client did so for 30 s; a new client answered correctly.
    If -1001 were taken for an end, the log would seem empty: no lease, no journal, no records left to copy.
    """
    return sorted(
        (at for at, info in found.items() if info.offset < least), key=lambda at: (at.topic, at.partition)
    )
