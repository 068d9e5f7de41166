"""A Kafka cluster as it was found, as plain data for the pure checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

TopicPartition = tuple[str, int]
Offsets = Mapping[TopicPartition, int]


class LogRange(NamedTuple):
    """The begin and the end (exclusive) of a partition's log, as the reader that has asked sees them."""

    begin: int
    end: int


@dataclass(frozen=True)
class TopicDescription:
    """A topic as the brokers describe it.

    :param configs: effective values of all topic configs.
    :param overrides: the configs set on the topic itself, which a copy of the topic must carry.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    topic_id: str = ""

    @property
    def cleanup_policy(self) -> tuple[str, ...]:
        """``cleanup.policy`` as a sorted tuple."""
        return tuple(sorted(p.strip() for p in self.configs.get("cleanup.policy", "delete").split(",")))


@dataclass(frozen=True)
class LogDir:
    """A directory in which a broker keeps replicas.

    :param broker: its node id.
    :param total: bytes of the volume with this directory; None if the broker doesn't tell (KIP-827: Kafka 3.3).
    :param usable: bytes that the broker can still write on this volume; None if the broker doesn't tell.
    :param sizes: bytes by replica in this directory, for the partitions that were asked for.
    :param takes_replicas: whether new replicas may be placed here: the directory is neither offline nor cordoned.
    """

    broker: int
    path: str
    total: int | None
    usable: int | None
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    takes_replicas: bool = True


@dataclass(frozen=True)
class Disks:
    """The log dirs of the brokers that are up.

    :param untold: by broker that tells no log dirs, the reason.
    """

    log_dirs: tuple[LogDir, ...] = ()
    untold: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Abilities:
    """What the brokers that are up can do.

    :param requests: by broker that has told them (ApiVersions, KIP-35), the names of the requests that it answers.
    :param features: by feature, the level that the cluster uses (KIP-584). A feature that is off is absent.
    """

    requests: Mapping[int, frozenset[str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupDescription:
    """The group of an application.

    :param state: Kafka's word (Stable, Empty, Dead, PreparingRebalance, NotReady, …).
    :param protocol: ``streams`` for the protocol of KIP-1071, else ``classic``. The consumer protocol counts as
        ``classic`` here, because it behaves like the classic protocol.
    :param assigned: the partitions that each member reads. Empty for the streams protocol: its members have tasks.
    :param processes: the number of processes that the members are threads of; 0 if the protocol doesn't tell it.
    """

    group_id: str
    state: str
    members: tuple[str, ...] = ()
    protocol: str = "classic"
    assigned: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    processes: int = 0

    @property
    def is_live(self) -> bool:
        """Whether the group has members, as far as the coordinator knows."""
        return bool(self.members)


class Habit(NamedTuple):
    """How a topic is written.

    :param codec: the codec of most records; empty if most have none, or if there are no records.
    :param in_transactions: whether any record that the application has written belongs to a transaction.
    """

    codec: str = ""
    in_transactions: bool = False


@dataclass(frozen=True)
class ClusterDescription:
    """Everything on the cluster that preflight and plan look at.

    :param topics: by name; a topic that doesn't exist is absent.
    :param group: the running generation's group.
    :param committed: the running generation's committed offsets (next offset to read).
    :param begins: log start offsets.
    :param ends: end offsets as a ``read_committed`` reader sees them.
    :param habits: how topics are written, as far as preflight has looked.
    :param disks: what the brokers tell about their disks, as far as preflight has looked.
    :param abilities: what the brokers can do, as far as preflight has looked.
    """

    cluster_id: str
    brokers: int
    topics: Mapping[str, TopicDescription]
    group: GroupDescription
    committed: Offsets = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    habits: Mapping[str, Habit] = field(default_factory=dict)
    disks: Disks = Disks()
    abilities: Abilities = Abilities()
