"""Preflight: is every role allowed what it will need, as far as the brokers say so?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource, command
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.roles import Role

EXAMPLE = "preflight"
"""Ends the name of a group or a transactional id that does not exist, to ask what a prefix allows."""


@dataclass(frozen=True)
class Right:
    """What a role's principal may do with one resource.

    :param operations: allowed ones.
    :param asked: the operations that the brokers were asked about.
    """

    role: Role
    resource: Resource
    name: str
    operations: frozenset[Operation]
    asked: frozenset[Operation] = frozenset(Operation)


def examples(acls: Iterable[Acl], topics: Iterable[str]) -> dict[Resource, list[str]]:
    """Return the resources by which to find out whether permissions have been given.

    :param topics: full names of the application's topics; those that a prefix covers stand for it.
    """
    known = list(topics)
    found: dict[Resource, dict[str, None]] = {resource: {} for resource in Resource}
    for pattern in sorted({acl.pattern for acl in acls}):
        found[pattern.resource].update(dict.fromkeys(_examples(pattern, known)))
    return {resource: list(names) for resource, names in found.items()}


def missing_acls(acls: Iterable[Acl], rights: Iterable[Right]) -> Iterator[Acl]:
    """Yield the permissions that some resource lacks which they are for."""
    told = list(rights)
    for acl in acls:
        concerned = (r for r in told if r.role is acl.role and acl.pattern.covers(r.resource, r.name))
        if any(acl.operation in r.asked and acl.operation not in r.operations for r in concerned):
            yield acl


def acl_findings(
    acls: Iterable[Acl], rights: Iterable[Right], principals: Mapping[Role, str], servers: str
) -> list[Finding]:
    """Return a finding per missing permission; of roles with one principal, the first that needs it.

    :param servers: ``bootstrap.servers``, for the commands.
    """
    found: dict[tuple[str, Pattern, Operation], Finding] = {}
    for acl in missing_acls(acls, rights):
        principal = principals[acl.role]
        found.setdefault(
            (principal, acl.pattern, acl.operation),
            Finding(
                f"permissions of {principal} (role {acl.role})",
                f"no {acl.operation} on {acl.pattern}",
                "the ACLs that `python -m kafka_rescale acls FILE` prints",
                f"Grant it: {command(principal, [acl], servers)}",
            ),
        )
    return list(found.values())


def _examples(pattern: Pattern, topics: list[str]) -> list[str]:
    if not pattern.prefixed:
        return [pattern.name]
    if pattern.resource is Resource.TOPIC:
        return [name for name in topics if pattern.covers(Resource.TOPIC, name)]
    return [f"{pattern.name}{EXAMPLE}"]
