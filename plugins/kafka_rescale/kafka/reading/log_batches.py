"""The headers of a log's record batches, as brokers send them.

Clients show committed records only. The offsets missing between these may be markers, aborted records, or records
that log cleaning has removed. Only the batches tell which. kafka-python encodes and sends the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kafka.errors import KafkaError, OffsetOutOfRangeError, for_code
from kafka.protocol.consumer import FetchRequest
from kafka.structs import TopicPartition

from kafka_rescale.core.formats.record_batches import Batch, batches_of, ends_within_batch
from kafka_rescale.kafka.admin.group_members import is_passing, outage, refused
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until

BYTES = 8 * 1024 * 1024
WAIT_MS = 500
SECONDS = 60.0
END_OF_LOG = 2**63 - 1
"""The end of the log at the moment when all batches before it have been read."""
_LAST_VERSION_WITH_NAMES = 12


def log_batches(connection: KafkaConnection, topic: str, partition: int, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a partition that have an offset within a range, in their order.

    :param start: first offset. If log cleaning has removed it, the next remaining batch comes first. If the log
        begins behind it, no batch comes.
    :param end: exclusive; not behind the high watermark, or ``END_OF_LOG``.
    :raises Outage: the leader doesn't answer.
    :raises InvalidInput: reading is not allowed.
    """
    with admin_client(connection) as client:
        yield from batches_between(client, TopicPartition(topic, partition), start, end)


def batches_between(client: Any, at: TopicPartition, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a partition as ``log_batches`` does, by a client that reads several partitions."""
    is_cut = False
    while start < end:
        data = fetch_answer(client, at, start)
        found = [b for b in batches_of(data) if b.last >= start]
        if not found:
            return
        found[0] = replace(found[0], opens_segment=not is_cut)
        yield from (b for b in found if b.first < end)
        start, is_cut = found[-1].last + 1, ends_within_batch(data)


def fetch_answer(
    client: Any, at: TopicPartition, offset: int, size: int = BYTES, seconds: float = SECONDS
) -> bytes:
    """Ask for batches until there is an answer: leaders move.

    :param size: bytes to ask for; at least one batch comes in any case.
    :param seconds: how long to ask.
    :raises Outage: the leader doesn't answer.
    :raises InvalidInput: reading is not allowed.
    """
    what = f"topic {at.topic!r} partition {at.partition}"
    answers: list[bytes] = []
    failures: list[KafkaError] = []

    def has_answer() -> bool:
        try:
            answers.append(client._manager.run(_fetch, client, at, offset, size))
        except OffsetOutOfRangeError:
            answers.append(b"")
        except KafkaError as error:
            if not is_passing(error):
                raise refused(what, error, "READ on the topic") from None
            failures.append(error)
        return bool(answers)

    poll_until(has_answer, seconds=seconds, otherwise=lambda: outage(what, failures[-1], "its leader"))
    return answers[0]


async def _fetch(client: Any, at: TopicPartition, offset: int, size: int) -> bytes:
    leaders = await client._async_get_leader_for_partitions([at])
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(partition=at.partition, fetch_offset=offset, partition_max_bytes=size)
    request = FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=size,
        topics=[topic(topic=at.topic, partitions=[wanted])],
        max_version=_LAST_VERSION_WITH_NAMES,
    )
    answer = await client._manager.send(request, node_id=next(iter(leaders)))
    found = answer.responses[0].partitions[0]
    if found.error_code:
        raise for_code(found.error_code)(f"{at.topic}-{at.partition} at offset {offset}")
    return bytes(found.records or b"")
