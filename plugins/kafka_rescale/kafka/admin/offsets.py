"""Offsets: begins and ends of logs, and committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, RescaleError
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.kafka.admin.calls import SETTLE_SECONDS, has_code, value_of
from kafka_rescale.kafka.admin.group_commit import GroupCommit
from kafka_rescale.kafka.admin.topic_reader import ABSENT, TopicReader, not_known
from kafka_rescale.kafka.client.waiting import poll_until

PARTITIONS_AT_ONCE = 500
"""In one request. librdkafka's time for a request grows faster than its partitions: 5,000 of them took 0.15 s in
one request and 0.06 s in ten."""

NO_SUCH_RECORD = -1
"""Brokers' answer if the moment is after all records."""


class OffsetAdmin(TopicReader):
    """The part of ``ClusterAdmin`` that is about offsets."""

    def begin_offsets(self, topics: Iterable[str], *, if_present: bool = False) -> PartitionOffsets:
        """Return the log start offsets of every partition.

        :param if_present: leave out topics that the broker doesn't know, instead of an error.
        :raises ClusterOutage: no broker knows one of the topics, for ``SETTLE_SECONDS``.
        """
        return self._list_offsets(topics, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED, if_present)

    def end_offsets(
        self, topics: Iterable[str], read_committed: bool = True, *, if_present: bool = False
    ) -> PartitionOffsets:
        """Return the end offsets (exclusive) of every partition.

        :param read_committed: up to the first open transaction only, as a ``read_committed`` reader sees it.
        :param if_present: leave out topics that the broker doesn't know, instead of an error. A broker that has
            just started may not know a topic that exists: whoever asks so must not take such an answer for a loss.
        :raises ClusterOutage: no broker knows one of the topics, for ``SETTLE_SECONDS``.
        """
        isolation = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        return self._list_offsets(topics, OffsetSpec.latest(), isolation, if_present)

    def ends_of(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the end offsets (exclusive) of some partitions, as a ``read_committed`` reader sees them.

        A partition without an answer is left out: the caller asks again.
        """
        wanted = [TopicPartition(*each) for each in partitions]
        found = self._answers(wanted, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        return {(at.topic, at.partition): info.offset for at, info in found.items() if info.offset >= 0}

    def offsets_at(self, topics: Iterable[str], at_ms: int) -> PartitionOffsets:
        """Return the first offset of every partition whose record is not before a moment; else the end offset.

        :param at_ms: since the epoch, of the records' timestamps, which need not be in order.
        """
        names = list(topics)
        spec, isolation = OffsetSpec.for_timestamp(at_ms), IsolationLevel.READ_COMMITTED
        found, ends = self._list_offsets(names, spec, isolation, least=NO_SUCH_RECORD), self.end_offsets(names)
        return {
            topic: {p: ends[topic][p] if offset < 0 else offset for p, offset in by_partition.items()}
            for topic, by_partition in found.items()
        }

    def committed(self, group: str, counts: Mapping[str, int] | None = None) -> PartitionOffsets:
        """Return the committed offsets (next to read) of a group, once no transaction on them is open.

        :param counts: partitions per topic to ask for; a missing answer then means that no offset was ever
            committed. Without it, brokers leave out a partition whose very first commit is still being completed.
        :raises Outage: a transaction on them stays open.
        """
        # Here, as in the methods below: kafka-python takes longer to import than all our own modules, and tasks of
        # Spark don't need it.
        from kafka_rescale.kafka.admin.group_metadata import offsets_and_metadata

        wanted = [(topic, p) for topic, count in (counts or {}).items() for p in range(count)]
        offsets: PartitionOffsets = {}
        for (topic, partition), known in offsets_and_metadata(self.connection, group, wanted or None).items():
            offsets.setdefault(topic, {})[partition] = known.offset
        return offsets

    def committed_metadata(self, group: str) -> dict[str, dict[int, str]]:
        """Return what a group has committed beside its offsets: topic → partition → text.

        :raises Outage: the coordinator doesn't answer.
        """
        from kafka_rescale.kafka.admin.group_metadata import committed_metadata

        return committed_metadata(self.connection, group)

    def commit(self, group: str, offsets: PartitionOffsets, metadata: OffsetTexts | None = None) -> None:
        """Set the committed offsets of a group without members.

        :param offsets: topic → partition → next offset to read; others of the group stay as they are.
        :param metadata: the metadata of offsets that have some.
        :raises UnsafeState: the group has members, the brokers refuse a partition, or another process commits.
        :raises Outage: a coordinator doesn't know a partition, or doesn't answer, for ``SETTLE_SECONDS``.
        """
        if metadata:
            from kafka_rescale.kafka.admin.group_metadata import commit_with_metadata

            offsets = commit_with_metadata(self.connection, group, offsets, metadata)
        commit = GroupCommit(group, offsets)

        def done() -> bool:
            request = ConsumerGroupTopicPartitions(group, commit.wanted)
            answers = self._once(
                lambda client, seconds: client.alter_consumer_group_offsets([request], request_timeout=seconds)
            )
            commit.take(answers[group])
            return commit.shows(self.committed(group))

        if commit.wanted:
            poll_until(done, seconds=SETTLE_SECONDS, otherwise=commit.not_in_time)

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets, if it exists.

        :raises UnsafeState: the group has members.
        """
        answers = self._settled(
            lambda client, seconds: client.delete_consumer_groups([group], request_timeout=seconds),
            f"group {group!r}",
        )
        if not has_code(answers[group], KafkaError.GROUP_ID_NOT_FOUND):
            value_of(answers[group], f"group {group!r}")

    def _list_offsets(
        self,
        topics: Iterable[str],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        if_present: bool = False,
        least: int = 0,
    ) -> PartitionOffsets:
        names = set(topics)
        found: dict[TopicPartition, ListOffsetsResultInfo] = {}
        unknown: set[str] = set()

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
        offsets: PartitionOffsets = {}
        for partition, result in sorted(found.items(), key=lambda item: (item[0].topic, item[0].partition)):
            offsets.setdefault(partition.topic, {})[partition.partition] = result.offset
        return offsets

    def _answers(
        self, wanted: Sequence[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        def ask(client: AdminClient, seconds: float) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
            asked: dict[TopicPartition, Future[ListOffsetsResultInfo]] = {}
            for begin in range(0, len(wanted), PARTITIONS_AT_ONCE):
                some = dict.fromkeys(wanted[begin : begin + PARTITIONS_AT_ONCE], spec)
                asked |= client.list_offsets(some, isolation_level=isolation, request_timeout=seconds)
            return asked

        # _NOENT: librdkafka's word for partitions that have no leader at the moment.
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
    Taken for an end, -1001 would mean an empty log: no lease, no journal, no records left to copy.
    """
    return sorted(
        (at for at, info in found.items() if info.offset < least), key=lambda at: (at.topic, at.partition)
    )
