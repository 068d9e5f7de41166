"""What ``acls`` shows: permissions as a table, and the commands that give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_rescale.cli.output import Document, Rows
from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, commands
from kafka_rescale.core.roles import Role

HEADER = ("role", "principal", "resource", "pattern", "name", "operations")


@dataclass(frozen=True)
class Apart:
    """Permissions that no expansion needs.

    :param key: The key under which ``--json`` prints them.
    :param title: The purpose of these permissions.
    """

    key: str
    title: str
    acls: Sequence[Acl]


def acls_view(
    acls: Sequence[Acl],
    principals: Mapping[Role, str],
    servers: str,
    apart: Sequence[Apart] = (),
    remark: str = "",
) -> Document:
    """Show permissions.

    :param principals: The principal of each role.
    :param servers: The ``bootstrap.servers`` that the printed commands use.
    :param apart: Permissions that no expansion needs, shown in tables of their own.
    :param remark: What these permissions may lack; empty if nothing.
    """
    data: dict[str, object] = _data(acls, principals, servers)
    tables = [Rows("Permissions", HEADER, _rows(acls, principals))]
    closing = [*commands(acls, principals, servers), *([f"# {remark}"] if remark else [])]
    for each in apart:
        data[each.key] = _data(each.acls, principals, servers)
        tables.append(Rows(each.title, HEADER, _rows(each.acls, principals)))
        closing += ["", f"# {each.title}", *commands(each.acls, principals, servers)]
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
