"""What ``acls`` shows: permissions as a table, and the commands that give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, commands
from kafka_rescale.core.roles import Role

HEADER = ("role", "principal", "resource", "pattern", "name", "operations")


def acls_view(
    acls: Sequence[Acl],
    principals: Mapping[Role, str],
    servers: str,
    to_retire: Sequence[Acl] = (),
    application_id: str = "",
) -> Document:
    """Show permissions.

    :param principals: The principal of each role.
    :param servers: The ``bootstrap.servers`` that the printed commands use.
    :param to_retire: Permissions that only ``retire`` needs. Grant them while it has something to delete.
    :param application_id: The application that ``retire`` would clean up.
    """
    data: dict[str, object] = _data(acls, principals, servers)
    tables = [Rows("Permissions", HEADER, _rows(acls, principals))]
    closing = commands(acls, principals, servers)
    if to_retire:
        title = f"Only for retire_{application_id}, while generations from before the growth exist"
        data["retire"] = _data(to_retire, principals, servers)
        tables.append(Rows(title, HEADER, _rows(to_retire, principals)))
        closing += ["", f"# {title}", *commands(to_retire, principals, servers)]
    return Document(data, tables=tables, closing="\n".join(closing))


def _rows(acls: Sequence[Acl], principals: Mapping[Role, str]) -> list[tuple[str, ...]]:
    by_pattern: dict[tuple[Role, Pattern], list[Operation]] = {}
    for acl in acls:
        by_pattern.setdefault((acl.role, acl.pattern), []).append(acl.operation)
    return [
        (role, principals[role], p.resource, p.kind, p.name, ", ".join(operations))
        for (role, p), operations in by_pattern.items()
    ]


def _data(acls: Sequence[Acl], principals: Mapping[Role, str], servers: str) -> dict[str, object]:
    told = [
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
    return {"acls": told, "commands": commands(acls, principals, servers)}
