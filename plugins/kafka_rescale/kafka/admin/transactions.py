"""Open transactions: wait until all of them have ended, and name those that stay open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.waiting import poll_until

SECONDS = 60.0


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that hides the end of a partition from ``read_committed`` readers.

    :param offset: the offset of its first record in the partition.
    :param transactional_id: empty if no coordinator tells the transaction of this producer.
    :param coordinator: id of the broker that coordinates it.
    :param state: the state as the coordinator names it: Ongoing, PrepareCommit, ….
    :param hangs: whether the coordinator has finished with this partition and will never write the marker
        (KIP-664). None if no coordinator tells the transaction of this producer: it may hang, but brokers also
        keep quiet about transactional ids that this user may not describe.
    """

    topic: str
    partition: int
    offset: int
    producer_id: int
    producer_epoch: int
    transactional_id: str = ""
    coordinator: int = -1
    state: str = ""
    hangs: bool | None = None

    def __str__(self) -> str:
        known = f"{self.transactional_id!r} ({self.state} at coordinator {self.coordinator}, "
        return (
            f"{'hanging ' if self.hangs else ''}transaction {known if self.transactional_id else '('}producer id "
            f"{self.producer_id}, epoch {self.producer_epoch}) on {self.topic}-{self.partition} since offset "
            f"{self.offset}"
        )

    @property
    def remedy(self) -> str:
        """What a person can do to end it."""
        abort = (
            f"kafka-transactions.sh abort --topic {self.topic} --partition {self.partition} --start-offset "
            f"{self.offset}"
        )
        if self.hangs is None:
            return (
                "No coordinator tells whose it is: this user may not describe its transactional.id, or it hangs. "
                "Let a Kafka administrator look for it with `kafka-transactions.sh find-hanging`. If it is not in "
                "that list, stop its producer, and the coordinator aborts it after transaction.timeout.ms. If it "
                f"is, it will not end by itself: `{abort}`, which discards its records."
            )
        if self.hangs:
            return f"It will not end by itself: `{abort}`."
        return "Stop its producer; the coordinator aborts it after the producer's transaction.timeout.ms."


def wait_until_complete(
    admin: ClusterAdmin, topics: Sequence[str], *, seconds: float = SECONDS, longest_pause: float = 0.1
) -> PartitionOffsets:
    """Wait until the ends that a ``read_committed`` reader sees are the real ends, and return them.

    A commit returns when the coordinator has decided. The markers that make the records visible to readers follow
    a few ms later (seen).

    :raises Outage: a transaction stays open. The error names it if brokers tell it.
    """

    ends: PartitionOffsets = {}

    def complete() -> bool:
        ends.update(admin.end_offsets(topics))
        return ends == admin.end_offsets(topics, read_committed=False)

    def outage() -> Outage:
        found = open_transactions(admin, topics)
        return Outage(
            f"topics {', '.join(topics)}",
            found="; ".join(map(str, found)) or "a transaction that has only just ended",
            expected=f"no transaction that is open for {seconds:.0f} s",
            remedy=found[0].remedy if found else "Run again.",
        )

    poll_until(complete, seconds=seconds, otherwise=outage, longest_pause=longest_pause)
    return ends


def open_transactions(admin: ClusterAdmin, topics: Sequence[str]) -> list[OpenTransaction]:
    """Return the transactions that are open on some topics, as partition leaders and coordinators know them.

    Brokers tell a transactional id only to a principal that has DESCRIBE on it. Without this right, the
    transaction has no ``transactional_id`` here, and counts as one that hangs.

    :returns: an empty list if the request fails: for example, brokers before Kafka 3.0 don't know it (KIP-664).
    """
    ends = admin.end_offsets(topics, if_present=True)
    last = admin.end_offsets(topics, read_committed=False, if_present=True)
    hidden = [TopicPartition(t, p) for t in last for p in last[t] if ends.get(t, {}).get(p) != last[t][p]]
    try:
        with admin_client(admin.connection) as client:
            return _described(client, hidden) if hidden else []
    except KafkaError:
        return []


def _described(client: Any, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    open_ = [
        (at, producer)
        for at, state in sorted(client.describe_producers(partitions).items())
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    ]
    ids = sorted({producer.producer_id for _, producer in open_})
    listed = [each for some in client.list_transactions(producer_id_filters=ids).values() for each in some]
    coordinated = client.describe_transactions([each.transactional_id for each in listed])
    names = {each.producer_id: each.transactional_id for each in listed}
    return [_named(at, producer, names.get(producer.producer_id, ""), coordinated) for at, producer in open_]


def _named(at: TopicPartition, producer: Any, transactional_id: str, coordinated: Any) -> OpenTransaction:
    known = coordinated.get(transactional_id)
    return OpenTransaction(
        topic=at.topic,
        partition=at.partition,
        offset=producer.current_transaction_start_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transactional_id=transactional_id,
        coordinator=known.coordinator_id if known else -1,
        state=str(known.state.value) if known else "",
        hangs=at not in known.topic_partitions if known else None,
    )
