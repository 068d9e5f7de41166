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

SERVERS, PROTOCOL, MECHANISM = "bootstrap.servers", "security.protocol", "sasl.mechanism"
CERTIFICATE = "ssl.certificate.location"
SUBJECT = f"{CERTIFICATE} with the subject"
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


def identity_of(config: Mapping[str, object], subject: str | None) -> dict[str, str]:
    """Return what identifies cluster and principal; none of it is a secret.

    :param config: librdkafka settings.
    :param subject: the subject of the certificate that they name, empty if they name none. None if the file can't
        be read here: then the certificate is not compared.
    """
    told = {key: str(value) for key, value in config.items()}
    # Without a protocol, librdkafka does not log in. If it logs in without a mechanism, it uses Kerberos.
    protocol = told.get(PROTOCOL, "").upper() or "PLAINTEXT"
    mechanism = told.get(MECHANISM, told.get("sasl.mechanisms", "GSSAPI")) if protocol.startswith("SASL_") else ""
    names = (SERVERS, "sasl.username", "sasl.oauthbearer.client.id", "oauth_cb")
    identity = {key: told.get(key, "") for key in names} | {PROTOCOL: protocol, MECHANISM: mechanism}
    if subject is None:
        return identity
    # With a login, the user is that of the login, and each machine may have a certificate of its own.
    return {**identity, SUBJECT: subject if protocol == "SSL" else ""}


def refuse_difference(what: str, found: Mapping[str, str], wanted: Mapping[str, str], connection: str) -> None:
    """Refuse a file with which jobs would connect to another cluster than the tasks, or as another principal.

    Paths of certificates may differ between machines, so their subjects are compared.

    :param what: the file, for the message.
    :param found: the identity in its settings.
    :param wanted: the identity in the settings of the Airflow connection.
    :param connection: the Airflow connection, for the message.
    :raises InvalidInput: they differ in something that both have.
    """
    for key, there in wanted.items():
        here = found.get(key, there)
        if here == there or (key == SERVERS and _parts(here) == _parts(there)):
            continue
        raise _another(what, f"{key} {here!r}", repr(there), connection)


def refuse_other_secrets(
    what: str, found: Mapping[str, object], wanted: Mapping[str, str], connection: str
) -> None:
    """Refuse a file with another secret than the connection has. The secrets are not shown.

    :param what: the file, for the message.
    :param found: its settings.
    :param wanted: the settings of the Airflow connection.
    :param connection: the Airflow connection, for the message.
    :raises InvalidInput: a secret differs.
    """
    for key in SECRETS:
        if str(found.get(key, "")) != wanted.get(key, ""):
            raise _another(what, f"another {key}", "the one", connection)


def _another(what: str, found: str, expected: str, connection: str) -> InvalidInput:
    return InvalidInput(
        what,
        found=found,
        expected=f"{expected} of {connection}: jobs and the tasks around them speak to one cluster as one user",
        remedy="Correct the file or the connection.",
    )


def _parts(value: str) -> set[str]:
    """Split a list of servers, which may come in any order."""
    return {part.strip() for part in value.split(",")}
