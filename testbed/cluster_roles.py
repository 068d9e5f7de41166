"""Which broker of a cluster does what at the moment. A test asks this before it harms a certain broker."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.connection import KafkaConnection

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


class ClusterRoles:
    """Finds the node ids of leaders, coordinators and the active controller.

    :param connection: how to reach the cluster.
    """

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition; -1 if there is no leader."""
        return int(self._leaders(topic)[partition])

    def group_coordinator(self, group: str) -> int:
        """Return the coordinator of a group, whose topic must exist already."""
        return self._hashed(GROUPS, group)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the coordinator of a transactional id, whose topic must exist already."""
        return self._hashed(TRANSACTIONS, transactional_id)

    def controller(self) -> int:
        """Return the leader of the controller quorum. Metadata requests would name any broker instead."""
        with admin_client(self._connection) as client:
            quorum = client.describe_metadata_quorum()
        return int(quorum["topics"][0]["partitions"][0]["leader_id"])

    def _hashed(self, topic: str, name: str) -> int:
        leaders = self._leaders(topic)
        return leaders[abs(java_hash(name)) % len(leaders)]

    def _leaders(self, topic: str) -> dict[int, int]:
        admin = AdminClient(self._connection.client())
        return {
            number: p.leader for number, p in admin.list_topics(topic, timeout=20).topics[topic].partitions.items()
        }


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``, by which coordinators divide groups and transactional ids.

    The smallest number has no positive counterpart, so Kafka's ``Utils.abs`` makes it 0, and this does the same.
    """
    value, encoded = 0, text.encode("utf-16-be")
    for at in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[at : at + 2], "big")) & 0xFFFFFFFF
    signed = value - 0x100000000 if value >= 0x80000000 else value
    return 0 if signed == -0x80000000 else signed
