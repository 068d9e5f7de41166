"""The metadata of committed offsets, as other clients read and write it.

confluent-kafka ends what it commits with a byte 0, which Kafka Streams can't decode, and takes what others have
committed for something that ends so: what follows in memory is read as well. Hence kafka-python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import PartitionOffsets
from kafka_rescale.core.offset_metadata import OffsetTexts
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.group_members import asked


def committed_metadata(connection: KafkaConnection, group: str) -> dict[str, dict[int, str]]:
    """Return what a group has committed beside its offsets: topic → partition → text.

    :raises Outage: its coordinator doesn't answer.
    """

    def read(client: Any) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return dict(client.list_group_offsets({group: None})[group])

    texts: dict[str, dict[int, str]] = {}
    for at, known in asked(connection, f"committed offsets of group {group!r}", read).items():
        if known.metadata:
            texts.setdefault(at.topic, {})[at.partition] = known.metadata
    return texts


def commit_with_metadata(
    connection: KafkaConnection, group: str, offsets: PartitionOffsets, texts: OffsetTexts
) -> PartitionOffsets:
    """Set the offsets of those partitions that have metadata, and it with them; return the other ones.

    :param offsets: topic → partition → next offset to read, of a group without members.
    :raises UnsafeState: the coordinator refuses a partition.
    :raises Outage: it doesn't answer.
    """
    what = f"offsets of group {group!r}"
    wanted = {
        TopicPartition(topic, p): OffsetAndMetadata(offset, text, -1)
        for topic, of in offsets.items()
        for p, offset in of.items()
        if (text := texts.get(topic, {}).get(p))
    }

    def write(client: Any) -> None:
        for at, error in client.alter_group_offsets(group, wanted).items():
            if error is not NoError:
                refused[at] = error
                if error.retriable:
                    raise error

    refused: dict[TopicPartition, type[KafkaError]] = {}
    if wanted:
        asked(connection, what, write)
    for at, error in refused.items():
        if not error.retriable:
            raise UnsafeState(
                f"{what} for {at.topic}-{at.partition}",
                found=error.__name__,
                expected="a group without members, whose offsets can be set",
                remedy="Stop whoever is a member of this group, then run again.",
            )
    return {t: {p: o for p, o in of.items() if TopicPartition(t, p) not in wanted} for t, of in offsets.items()}
