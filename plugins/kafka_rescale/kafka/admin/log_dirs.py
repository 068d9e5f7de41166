"""What brokers tell about their disks (DescribeLogDirs, KIP-113; totals and usable bytes: KIP-827, Kafka 3.3).

confluent-kafka has no such call, so this uses kafka-python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import ClusterAuthorizationFailedError, KafkaError, for_code
from kafka.protocol.admin import DescribeLogDirsRequest

from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.admin.each_broker import answers_by_broker
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.client.connection import KafkaConnection

NOT_TOLD = -1
"""What a broker gives instead of a number of bytes that it does not know. kafka-python gives the same if the
answer has no such field."""


def read_disks(connection: KafkaConnection, counts: Mapping[str, int], role: Role = Role.PLAN) -> Disks:
    """Return the log dirs of all brokers that are up, with the sizes of some topics' replicas in them.

    The brokers in the metadata are asked; a broker that is fenced or down is not among them. If a broker doesn't
    answer, or refuses to answer this principal, the reason is in ``untold``.

    :param counts: number of partitions by topic, for the topics whose replicas' sizes are wanted.
    :param role: whose connection it is, for the reason.
    :raises ClusterOutage: no broker can be reached.
    """
    return asked(connection, "log dirs", lambda client: _told(client._manager.run(_ask, client, counts), role))


async def _ask(client: Any, counts: Mapping[str, int]) -> dict[int, Any]:
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    wanted = [topic(topic=name, partitions=list(range(count))) for name, count in counts.items()]
    return await answers_by_broker(client, lambda: DescribeLogDirsRequest(topics=wanted))


def _told(answers: Mapping[int, Any], role: Role) -> Disks:
    untold = {broker: why for broker, answer in answers.items() if (why := _reason(answer, role))}
    dirs = [_log_dir(n, each) for n, a in answers.items() if n not in untold for each in a.results]
    return Disks(tuple(dirs), untold)


def _reason(answer: Any, role: Role) -> str:
    """Return why a broker has told nothing; empty if it has told something."""
    error = answer if isinstance(answer, KafkaError) else _error_of(answer)
    if isinstance(error, ClusterAuthorizationFailedError):
        return f"the role {role} has no Describe on the cluster"
    return type(error).__name__ if error is not None else ""


def _error_of(answer: Any) -> KafkaError | None:
    if answer.error_code:
        return for_code(answer.error_code)()
    # Before version 3 the answer as a whole has no code: a principal without the right gets an empty answer.
    return None if answer.results else ClusterAuthorizationFailedError()


def _log_dir(broker: int, told: Any) -> LogDir:
    return LogDir(
        broker=broker,
        path=told.log_dir,
        total=_bytes(told.total_bytes),
        usable=_bytes(told.usable_bytes),
        sizes=dict(_sizes(told.topics)),
        takes_replicas=not told.error_code and not told.is_cordoned,
    )


def _bytes(told: int | None) -> int | None:
    return None if told is None or told == NOT_TOLD else told


def _sizes(topics: Iterable[Any]) -> Iterable[tuple[tuple[str, int], int]]:
    """Yield the size of each replica.

    A replica that is being moved to this log dir is counted in the log dir where it comes from.
    """
    for topic in topics or ():
        for partition in topic.partitions:
            if not partition.is_future_key:
                yield (topic.name, partition.partition_index), partition.partition_size
