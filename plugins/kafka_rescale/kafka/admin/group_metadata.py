"""Committed offsets and the metadata beside them, as other clients read and write them.

confluent-kafka ends the metadata that it commits with a byte 0, which Kafka Streams can't decode. It also expects
that byte in the metadata of other clients: if the byte is missing, it reads beyond the metadata in memory. And it
may kill the process (``group_members``). So this uses kafka-python.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import confluent_kafka as librdkafka
from kafka import TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.structs import OffsetAndMetadata

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.kafka.admin.consumer_groups import ask_coordinator
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import OUTAGES, class_of, class_of_code
from kafka_rescale.kafka.client.failures import to_error

STABLE_VERSIONS = (8, 8)
"""The oldest and the newest version of OffsetFetch to use. This version takes a list of groups, and it has the
names of topics instead of their ids."""


def offsets_and_metadata(
    connection: KafkaConnection, group: str, partitions: Collection[tuple[str, int]] | None = None
) -> dict[tuple[str, int], OffsetAndMetadata]:
    """Wait until no transaction on a group's offsets is open, and return the offsets.

    Partitions for which no offset was ever committed are left out.

    :param partitions: the partitions to ask for; None asks for all that brokers know.
    :raises ClusterOutage: the coordinator doesn't answer, or a transaction stays open.
    """

    request = _request(group, partitions)

    def read(client: Any) -> Mapping[TopicPartition, OffsetAndMetadata]:
        response = ask_coordinator(client, group, request)
        return dict(client._list_group_offsets_process_response(response)[group])

    found = asked(connection, f"committed offsets of group {group!r}", read, of_coordinator=True)
    return {(at.topic, at.partition): known for at, known in found.items() if known.offset >= 0}


def _request(group: str, partitions: Collection[tuple[str, int]] | None) -> OffsetFetchRequest:
    """Return the request of ``list_group_offsets``, but with stable offsets. That call can't require them."""
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    topics: list[Any] | None = None
    if partitions is not None:
        numbers: dict[str, list[int]] = {}
        for topic, partition in partitions:
            numbers.setdefault(topic, []).append(partition)
        topics = [of.OffsetFetchRequestTopics(name=name, partition_indexes=ps) for name, ps in numbers.items()]
    least, most = STABLE_VERSIONS
    return OffsetFetchRequest(
        groups=[of(group_id=group, topics=topics)], require_stable=True, min_version=least, max_version=most
    )


def committed_metadata(connection: KafkaConnection, group: str) -> dict[str, dict[int, str]]:
    """Return the metadata that a group has committed beside its offsets: topic → partition → text.

    :raises ClusterOutage: its coordinator doesn't answer.
    """
    texts: dict[str, dict[int, str]] = {}
    for (topic, partition), known in offsets_and_metadata(connection, group).items():
        if known.metadata:
            texts.setdefault(topic, {})[partition] = known.metadata
    return texts


def commit_offsets(connection: KafkaConnection, group: str, offsets: PartitionOffsets, texts: OffsetTexts) -> None:
    """Set offsets, together with their metadata.

    A coordinator may not know yet that a topic has grown, even if another broker knows it. So it is asked again.

    :param offsets: topic → partition → next offset to read, of a group without members.
    :param texts: topic → partition → metadata, for the offsets that have some.
    :raises RescaleError: the coordinator refuses a partition, for a reason that does not pass.
    :raises ClusterOutage: the coordinator doesn't answer, or doesn't know a partition that has just been added.
    """
    what = f"offsets of group {group!r}"
    wanted = {
        TopicPartition(topic, p): OffsetAndMetadata(offset, texts.get(topic, {}).get(p, ""), -1)
        for topic, of in offsets.items()
        for p, offset in of.items()
    }

    waiting: list[str] = []

    def write(client: Any) -> None:
        answers = client.alter_group_offsets(group, wanted)
        refused = {f"{at.topic}-{at.partition}": error for at, error in answers.items() if error is not NoError}
        _raise_if_refused(refused, what)
        waiting[:] = sorted(refused)
        if refused:
            raise next(iter(refused.values()))

    try:
        if wanted:
            asked(connection, what, write, of_coordinator=True)
    except ClusterOutage as error:
        named = f"{what} for {', '.join(waiting)}" if waiting else what
        raise type(error).of(error.complaint.about(named)) from None


def _raise_if_refused(refused: Mapping[str, type[KafkaError]], what: str) -> None:
    """Raise if a partition is refused for good, even if other partitions may succeed when asked for again."""
    for at, error in refused.items():
        if not error.retriable and class_of_code(error.errno, repeatable=False) not in OUTAGES:
            code = librdkafka.KafkaError(error.errno)
            raise to_error(code, what if class_of(code) is ErrorClass.GROUP_IN_USE else f"{what} for {at}")
