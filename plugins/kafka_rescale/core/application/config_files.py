"""Mounted files with Kafka settings for Spark jobs, where a connection's settings can't travel unseen.

A file holds the settings of one principal on one cluster. A role that has its own connection therefore needs its
own file, even if another file serves all other roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.roles import Role

IDENTITY = ("bootstrap.servers", "sasl.username", "sasl.oauthbearer.client.id", "oauth_cb")
"""Which cluster, and as whom: settings that are no secrets."""
SECRETS = ("sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config")

SPARK_ROLES = (Role.COPY, Role.VERIFY)
"""The roles that run Spark jobs."""


@dataclass(frozen=True)
class KafkaOfJob:
    """Where a role's Spark jobs have their Kafka settings from.

    :param conn_id: the Airflow connection.
    :param file: that the application file names for them.
    :param is_own: whether the role has a connection of its own, so that no file for all will do.
    """

    conn_id: str
    file: str | None
    is_own: bool

    @property
    def connection(self) -> str:
        """The connection, for messages."""
        return f"Airflow connection {self.conn_id!r}"

    def mounted(self, default: str | None, variable: str) -> str | None:
        """Return the file to be used.

        :param default: what the environment names, for all roles of all applications.
        :param variable: by which name.
        :raises InvalidInput: only the default is there, and it is not for this role.
        """
        if self.file is None and default and self.is_own:
            raise InvalidInput(
                f"environment variable {variable}",
                found=f"{default}, one file for all, while {self.connection} is that of a single role",
                expected="a file of that role, whose settings would not be used otherwise",
                remedy="Declare it in the application file: `kafka_config_files: {role: file}`.",
            )
        return self.file or default


def of_spark_jobs(files: dict[Role, str], roles: tuple[Role, ...]) -> dict[Role, str]:
    """Return the files of an application file, if all are of roles that run Spark jobs.

    :param files: `kafka_config_files`.
    :param roles: those that run Spark jobs.
    :raises ValueError: in the words of a message about the field.
    """
    for role in files:
        if role not in roles:
            raise ValueError(
                f"found a file of role {role}; expected files of {' and '.join(roles)}, which run Spark jobs. "
                "Delete it."
            )
    return files


def identity_of(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that tell which cluster, and as whom; none of them is a secret.

    :param config: librdkafka settings.
    """
    return {key: str(config.get(key, "")) for key in IDENTITY}


def refuse_difference(
    what: str, found: Mapping[str, str], wanted: Mapping[str, str], connection: str, *, with_secrets: bool
) -> None:
    """Refuse a file with which jobs would speak to another cluster than the tasks, or as somebody else.

    Paths of certificates may differ from machine to machine, and are not compared.

    :param what: the file, for the message.
    :param found: its settings.
    :param wanted: those of the Airflow connection.
    :param connection: which one, for the message.
    :param with_secrets: whether ``wanted`` has them; they are compared, never shown.
    :raises InvalidInput: one of the settings differs.
    """
    for key in (*IDENTITY, *(SECRETS if with_secrets else ())):
        here, there = str(found.get(key, "")), str(wanted.get(key, ""))
        if _parts(here) == _parts(there):
            continue
        raise InvalidInput(
            what,
            found=f"another {key}" if key in SECRETS else f"{key} {here!r}",
            expected=f"{'the one' if key in SECRETS else repr(there)} of {connection}: jobs and the tasks around "
            "them speak to one cluster as one user",
            remedy="Correct the file or the connection.",
        )


def _parts(value: str) -> set[str]:
    """Servers may come in any order."""
    return {part.strip() for part in value.split(",")}
