"""A broker with TLS, SCRAM, client certificates and an authorizer, and an application with its permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.acls.needed import needed_acls
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import load_application, topology_of

from testbed.broker import EmbeddedBroker
from testbed.broker_security import BrokerSecurity
from tests.support.small_application import KEYS, Made, placed
from tests.support.small_cluster import create, produce

BEFORE, AFTER = 4, 8
CANARY = "kanarienvogel-7f3a9c"
"""A part of every password and every key here. Only a client and a broker may ever have it."""

SHOP: dict[str, Any] = {
    "application_id": "shop",
    "partitions": AFTER,
    "inputs": [
        {"topic": "orders", "policy": "unkeyed"},
        {"topic": "customers", "policy": "paused"},
        {"topic": "payments", "policy": "repartitioned", "isolation_level": "read_committed"},
    ],
    "outputs": [{"topic": "totals", "partitions": AFTER}],
    "subtopologies": [
        {"sources": ["orders"], "sinks": ["by-customer-repartition"]},
        {
            "sources": ["by-customer-repartition", "customers", "payments"],
            "stores": ["per-customer"],
            "sinks": ["totals"],
        },
    ],
    "stores": [{"name": "per-customer", "type": "timestamped-key-value"}],
    "lifecycle": {
        "type": "shell",
        "start": "true {application_id} {input:payments}",
        "stop": "true {application_id}",
        "status": "sh -c 'exit 3' {application_id}",
    },
}
"""An application with every input policy that needs permissions of its own.

No name is a prefix of another name.
"""

CHANGELOG, REPARTITION = "shop-per-customer-changelog", "shop-by-customer-repartition"
TOPICS: dict[str, dict[str, str]] = {
    "orders": {},
    "customers": {"cleanup.policy": "compact"},
    "payments": {"retention.ms": "-1"},
    "totals": {},
    CHANGELOG: {"cleanup.policy": "compact"},
    REPARTITION: {"cleanup.policy": "delete", "retention.ms": "-1"},
}
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}


@dataclass(frozen=True)
class Secured:
    """The shop and its broker. The role ``plan`` logs in by certificate, the other roles by password."""

    broker: EmbeddedBroker
    file: Path

    @cached_property
    def application(self) -> Application:
        """The application, loaded from its file."""
        return load_application(self.file)

    @cached_property
    def topology(self) -> Topology:
        """The topology of the application."""
        return topology_of(self.application)

    @cached_property
    def connections(self) -> dict[Role, KafkaConnection]:
        """The connection of every role."""
        by_password = {role: KafkaConnection(self.broker.client_config(role.value)) for role in Role}
        return {**by_password, Role.PLAN: KafkaConnection(self.broker.certified_config("plan"))}

    @cached_property
    def owner(self) -> AdminClient:
        """The admin client of a super user."""
        return AdminClient(self.broker.internal_config)

    @property
    def acls(self) -> tuple[Acl, ...]:
        """The permissions as documented."""
        return needed_acls(self.application, self.topology)

    def grant(self, acls: Iterable[Acl]) -> None:
        """Give permissions."""
        bindings = [binding(AclBinding, acl, self.connections[acl.role].principal) for acl in acls]
        for future in self.owner.create_acls(bindings).values():
            future.result(30)

    def revoke(self, acl: Acl) -> None:
        """Take a permission away."""
        taken = binding(AclBindingFilter, acl, self.connections[acl.role].principal)
        for future in self.owner.delete_acls([taken]).values():
            assert len(future.result(30)) == 1


def binding(kind: Any, acl: Acl, principal: str) -> Any:
    """Return a permission as confluent-kafka has it.

    :param kind: ``AclBinding`` or ``AclBindingFilter``.
    """
    return kind(
        _RESOURCES[acl.pattern.resource],
        acl.pattern.name,
        ResourcePatternType.PREFIXED if acl.pattern.prefixed else ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[acl.operation.name],
        AclPermissionType.ALLOW,
    )


@contextmanager
def secured(directory: Path, **changes: Any) -> Iterator[Secured]:
    """A running broker with the shop's topics and records. No permission is granted yet.

    :param changes: of the application file.
    """
    users = {role.value: f"{role}-{CANARY}" for role in Role}
    security = BrokerSecurity(directory / "certificates", users)
    with EmbeddedBroker(directory / "broker", heap="384m", security=security) as broker:
        owner = broker.internal_config
        create(owner, [NewTopic(name, BEFORE, config=config) for name, config in TOPICS.items()])
        keyed = placed(KEYS, BEFORE)
        produce(owner, {"orders": [Made(i % BEFORE, None) for i in range(8)], "customers": keyed})
        produce(owner, {name: keyed for name in ("payments", CHANGELOG, REPARTITION)})
        file = directory / "shop.yaml"
        file.write_text(yaml.safe_dump({**SHOP, **changes}, sort_keys=False))
        yield Secured(broker, file)


@contextmanager
def authorizing_broker(directory: Path) -> Iterator[EmbeddedBroker]:
    """A broker on which ``grower`` needs permissions, and ``root`` may do everything. Both log in by PLAIN."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root;User:ANONYMOUS",
    }
    users = {"root": "root-password", "grower": "grower-password"}
    with EmbeddedBroker(directory, heap="512m", sasl_users=users, properties=properties) as running:
        yield running
