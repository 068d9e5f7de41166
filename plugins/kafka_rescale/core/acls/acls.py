"""Access control lists of Kafka as values. They say which principal may do which operation on which resource."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafka_rescale.core.roles import Role


class Resource(StrEnum):
    """A type of resource, in the words of ``kafka-acls.sh``."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """An operation, in the words of ``kafka-acls.sh``."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"


IMPLYING = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""By operation, the other operations that imply it (``StandardAuthorizerData``, ``IMPLIES_DESCRIBE``)."""


@dataclass(frozen=True, order=True)
class Pattern:
    """Resources, by a whole name or by the beginning of their names."""

    resource: Resource
    name: str
    prefixed: bool = False

    def covers(self, resource: Resource, name: str) -> bool:
        """Return whether a resource matches this pattern."""
        if resource is not self.resource:
            return False
        return name.startswith(self.name) if self.prefixed else name == self.name

    def includes(self, other: Pattern) -> bool:
        """Return whether every resource of another pattern matches this pattern."""
        return self.covers(other.resource, other.name) and (self.prefixed or not other.prefixed)

    @property
    def kind(self) -> str:
        """Kafka's word for the way in which names are compared."""
        return "prefixed" if self.prefixed else "literal"

    @property
    def options(self) -> str:
        """The pattern as options of ``kafka-acls.sh``."""
        if self.resource is Resource.CLUSTER:
            return f"--{self.resource}"
        kind = f" --resource-pattern-type {self.kind}" if self.prefixed else ""
        return f"--{self.resource} {shlex.quote(self.name)}{kind}"

    def __str__(self) -> str:
        return f"{self.resource} {self.name!r}{' and what begins with it' if self.prefixed else ''}"


@dataclass(frozen=True)
class Acl:
    """One permission that a role needs."""

    role: Role
    pattern: Pattern
    operation: Operation

    def is_given_by(self, other: Acl) -> bool:
        """Return whether another permission implies this one, so that this one is needless."""
        enough = self.operation is other.operation or other.operation in IMPLYING.get(self.operation, ())
        return self.role is other.role and enough and other.pattern.includes(self.pattern)


def without_needless(acls: Iterable[Acl]) -> tuple[Acl, ...]:
    """Return the permissions, role by role, without permissions that others imply."""
    roles = list(Role)
    wanted = sorted(set(acls), key=lambda acl: (roles.index(acl.role), acl.pattern, acl.operation))
    return tuple(a for a in wanted if not any(a != b and a.is_given_by(b) for b in wanted))


def command(principal: str, acls: Iterable[Acl], servers: str) -> str:
    """Return the ``kafka-acls.sh`` command that gives permissions on one pattern.

    :param principal: the principal, such as ``User:alice``.
    :param acls: the permissions. All have the same pattern.
    :param servers: ``bootstrap.servers``.
    """
    given = list(acls)
    operations = " ".join(f"--operation {acl.operation}" for acl in given)
    who = f"--bootstrap-server {shlex.quote(servers)} --add --allow-principal {shlex.quote(principal)}"
    return f"kafka-acls.sh {who} {operations} {given[0].pattern.options}"


def commands(acls: Iterable[Acl], principals: Mapping[Role, str], servers: str) -> list[str]:
    """Return one command per principal and pattern.

    :param principals: the principal of every role that occurs. Several roles may have the same principal.
    """
    by_command: dict[tuple[str, Pattern], list[Acl]] = {}
    for acl in acls:
        by_command.setdefault((principals[acl.role], acl.pattern), []).append(acl)
    return [
        command(principal, {a.operation: a for a in each}.values(), servers)
        for (principal, _), each in by_command.items()
    ]
