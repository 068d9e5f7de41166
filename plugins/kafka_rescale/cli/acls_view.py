"""What ``acls`` shows: permissions as a table, and the commands that give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.acls import Acl, Operation, Pattern, Role, commands


def acls_view(acls: Sequence[Acl], principals: Mapping[Role, str], servers: str) -> Document:
    """Show permissions.

    :param principals: of every role.
    :param servers: ``bootstrap.servers``, for the commands.
    """
    by_pattern: dict[tuple[Role, Pattern], list[Operation]] = {}
    for acl in acls:
        by_pattern.setdefault((acl.role, acl.pattern), []).append(acl.operation)
    rows = [
        (
            role,
            principals[role],
            p.resource,
            p.kind,
            p.name,
            ", ".join(operations),
        )
        for (role, p), operations in by_pattern.items()
    ]
    data = [
        {
            "role": a.role,
            "principal": principals[a.role],
            "resource": a.pattern.resource,
            "name": a.pattern.name,
            "pattern": a.pattern.kind,
            "operation": a.operation,
        }
        for a in acls
    ]
    lines = commands(acls, principals, servers)
    header = ("role", "principal", "resource", "pattern", "name", "operations")
    tables = (Rows("Permissions", header, rows),)
    return Document({"acls": data, "commands": lines}, tables=tables, closing="\n".join(lines))
