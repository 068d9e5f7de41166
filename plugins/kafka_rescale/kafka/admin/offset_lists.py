"""Offsets of many partitions by one request for each leader, with kafka-python.

For 6,250 partitions librdkafka takes 0.2 s of a core, and this 0.04 s. The pause has some twelve such listings.
Here nothing is tried again: whatever is not as it should be, the caller asks librdkafka, whose clients look for
leaders that have moved.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.connection import KafkaConnection

log = logging.getLogger(__name__)

SECONDS = 2.0
"""How long a client may take to start, brokers to tell the leaders, and each leader to answer."""
AT_ONCE = 4
"""Listings side by side. kafka-python refuses more than five requests of one connection that wait for answers."""
REST_SECONDS = 30.0
"""How long nothing is asked here after an answer that was not complete: a broker is away, or leaders move."""

_Topic = MetadataRequest.MetadataRequestTopic
_Offsets = ListOffsetsRequest.ListOffsetsTopic
_Partition = _Offsets.ListOffsetsPartition


class OffsetLists:
    """The listings of one cluster. Several threads may ask at the same time. It does not keep the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._turns = threading.Semaphore(AT_ONCE)
        self._started: Any = None
        self._end: weakref.finalize[..., Any] | None = None
        self._rests_until = 0.0

    def ask(
        self, connection: KafkaConnection, topics: Collection[str], at: int, *, read_committed: bool
    ) -> PartitionOffsets | None:
        """Return an offset of every partition; None if brokers have not told all of them at once.

        :param connection: how to reach the cluster; the first listing starts the client.
        :param at: -1 for the ends, -2 for the log starts (``ListOffsetsRequest``, KIP-79).
        :param read_committed: return the ends that a ``read_committed`` reader sees.
        """
        if self._rests():
            return None
        found: PartitionOffsets | None = None
        try:
            with self._turns:
                client = self._client(connection)
                if client is None:
                    return None
                found = client._manager.run(_in_time, client, sorted(topics), at, read_committed)
        except Exception as error:  # such as a crash of the client's own loop, which each later request repeats
            log.debug("offsets are asked for by librdkafka: %s", error)
        if found is None:
            self._rests_until = time.monotonic() + REST_SECONDS
            self._close()
        return found

    def _client(self, connection: KafkaConnection) -> Any:
        """Return the client; None if another thread has just had no complete answer."""
        with self._lock:
            if self._rests():
                return None
            if self._started is None:
                self._started = admin_client(connection, SECONDS)
                # Its thread would live as long as the process. At the end of the process, it ends by itself.
                self._end = weakref.finalize(self, self._started.close)
                self._end.atexit = False
            return self._started

    def _rests(self) -> bool:
        return time.monotonic() < self._rests_until

    def _close(self) -> None:
        """End the client, which would look for brokers for ever, when no other thread asks by it."""
        with self._closing, ExitStack() as turns:
            # A request that begins while its client ends might wait for ever.
            for _ in range(AT_ONCE):
                turns.enter_context(self._turns)
            end, self._started, self._end = self._end, None, None
            if end is not None:
                with suppress(Exception):
                    end()


async def _in_time(client: Any, topics: list[str], at: int, read_committed: bool) -> PartitionOffsets | None:
    timeout_ms = SECONDS * 1000
    wanted = MetadataRequest(topics=[_Topic(name=name) for name in topics], allow_auto_topic_creation=False)
    metadata = await client._manager.wait_for(client._manager.send(wanted), timeout_ms)
    leaders = _leaders(metadata, topics)
    if leaders is None:
        return None
    asked = [
        client._manager.send(_request(of_leader, at, read_committed), node_id=leader)
        for leader, of_leader in leaders.items()
    ]
    found: PartitionOffsets = {}
    for answer in asked:
        for topic in (await client._manager.wait_for(answer, timeout_ms)).topics:
            if any(each.error_code or each.offset < 0 for each in topic.partitions):
                return None
            told = {each.partition_index: each.offset for each in topic.partitions}
            found.setdefault(topic.name, {}).update(told)
    return _in_order(found, leaders)


def _leaders(metadata: Any, topics: list[str]) -> dict[int, dict[str, list[int]]] | None:
    """Return leader → topic → partitions; None if a topic is not known, or a partition has no leader."""
    leaders: dict[int, dict[str, list[int]]] = {}
    for topic in metadata.topics:
        if topic.error_code or not topic.partitions:
            return None
        for partition in topic.partitions:
            # A code may stand beside a leader: some replica is not there.
            if partition.leader_id < 0:
                return None
            leaders.setdefault(partition.leader_id, {}).setdefault(topic.name, []).append(
                partition.partition_index
            )
    return leaders if {topic.name for topic in metadata.topics} == set(topics) else None


def _request(partitions: dict[str, list[int]], at: int, read_committed: bool) -> Any:
    topics = [
        _Offsets(
            name=name,
            partitions=[_Partition(partition_index=p, current_leader_epoch=-1, timestamp=at) for p in numbers],
        )
        for name, numbers in partitions.items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(read_committed), topics=topics)


def _in_order(found: PartitionOffsets, leaders: dict[int, dict[str, list[int]]]) -> PartitionOffsets | None:
    """Return the offsets by topic and partition; None if a leader has left one out."""
    asked = sum(len(numbers) for topics in leaders.values() for numbers in topics.values())
    if sum(map(len, found.values())) != asked:
        return None
    return {topic: dict(sorted(found[topic].items())) for topic in sorted(found)}
