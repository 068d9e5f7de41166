"""The check of preflight that every role has the permissions that it will need, as far as the brokers tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource, command
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.roles import Role

EXAMPLE = "preflight"
"""The end of a made-up name of a group or transactional id, with which preflight asks what a prefix allows."""


@dataclass(frozen=True)
class Right:
    """The allowed operations of a role's principal on one resource.

    :param operations: the allowed operations.
    :param asked: the operations that the brokers were asked about.
    """

    role: Role
    resource: Resource
    name: str
    operations: frozenset[Operation]
    asked: frozenset[Operation] = frozenset(Operation)


def examples(acls: Iterable[Acl], topics: Iterable[str]) -> dict[Resource, list[str]]:
    """Return the resources to ask the brokers about. The answers tell whether permissions have been given.

    :param topics: full names of the application's topics. The topics under a prefix are examples for the prefix.
    """
    known = list(topics)
    found: dict[Resource, dict[str, None]] = {resource: {} for resource in Resource}
    for pattern in sorted({acl.pattern for acl in acls}):
        found[pattern.resource].update(dict.fromkeys(_examples(pattern, known)))
    return {resource: list(names) for resource, names in found.items()}


def missing_acls(acls: Iterable[Acl], rights: Iterable[Right]) -> Iterator[Acl]:
    """Yield every permission that is missing on at least one of the resources that were asked about."""
    told = list(rights)
    for acl in acls:
        concerned = (r for r in told if r.role is acl.role and acl.pattern.covers(r.resource, r.name))
        if any(acl.operation in r.asked and acl.operation not in r.operations for r in concerned):
            yield acl


def acl_findings(
    acls: Iterable[Acl], rights: Iterable[Right], principals: Mapping[Role, str], servers: str
) -> list[Finding]:
    """Return a finding per missing permission. If several roles share a principal, only the first role gets it.

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
