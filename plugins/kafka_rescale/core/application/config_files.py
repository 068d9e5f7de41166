"""Mounted files with Kafka settings for Spark jobs, for when a connection can't be passed to jobs unseen.

A file holds one principal's settings for one cluster. A role with its own connection therefore needs its own file,
even if another file serves all other roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.roles import Role

IDENTITY = ("bootstrap.servers", "sasl.username", "sasl.oauthbearer.client.id", "oauth_cb")
"""The settings that identify cluster and principal; they are no secrets."""
SECRETS = ("sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config")

SPARK_ROLES = (Role.COPY, Role.VERIFY)
"""The roles that run Spark jobs."""


@dataclass(frozen=True)
class KafkaOfJob:
    """The source of the Kafka settings of a role's Spark jobs.

    :param conn_id: the Airflow connection.
    :param file: the file that the application file names for the role.
    :param is_own: whether the role has a connection of its own, so that a file for all roles can't serve it.
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

        :param default: the file that the environment names, for all roles of all applications.
        :param variable: the environment variable that names it.
        :raises InvalidInput: there is only the default, and it is not for this role.
        """
        if self.file is None and default and self.is_own:
            raise InvalidInput(
                f"environment variable {variable}",
                found=f"{default}, one file for all, while {self.connection} is that of a single role",
                expected="a file of that role: otherwise its settings would not be used",
                remedy="Declare it in the application file: `kafka_config_files: {role: file}`.",
            )
        return self.file or default


def of_spark_jobs(files: dict[Role, str], roles: tuple[Role, ...]) -> dict[Role, str]:
    """Return the files of an application file, if all are of roles that run Spark jobs.

    :param files: the field `kafka_config_files`.
    :param roles: the roles that run Spark jobs.
    :raises WrongValue: another role has a file.
    """
    for role in files:
        if role not in roles:
            raise WrongValue(
                found=f"a file of role {role}",
                expected=f"files of {' and '.join(roles)}, which run Spark jobs",
                remedy="Delete it.",
            )
    return files


def identity_of(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that identify cluster and principal; none of them is a secret.

    :param config: librdkafka settings.
    """
    return {key: str(config.get(key, "")) for key in IDENTITY}


def refuse_difference(
    what: str, found: Mapping[str, str], wanted: Mapping[str, str], connection: str, *, with_secrets: bool
) -> None:
    """Refuse a file with which jobs would connect to another cluster than the tasks, or as another principal.

    Paths of certificates may differ between machines, and are not compared.

    :param what: the file, for the message.
    :param found: its settings.
    :param wanted: the settings of the Airflow connection.
    :param connection: the Airflow connection, for the message.
    :param with_secrets: whether ``wanted`` has the secrets; they are compared, never shown.
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
    """Split a list of servers, which may come in any order."""
    return {part.strip() for part in value.split(",")}
