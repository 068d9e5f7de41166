"""Mounted files with Kafka settings for Spark jobs, where a connection's settings can't travel unseen.

A file holds the settings of one principal on one cluster, so that one for all roles is none for a role that has a
connection of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.acls import Role
from kafka_rescale.core.errors import InvalidInput

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

    def mounted(self, default: str | None, variable: str) -> str | None:
        """Return the file to be used.

        :param default: what the environment names, for all roles of all applications.
        :param variable: by which name.
        :raises InvalidInput: only the default is there, and it is not for this role.
        """
        if self.file is None and default and self.is_own:
            raise InvalidInput(
                f"environment variable {variable}",
                found=f"{default}, one file for all, while connection {self.conn_id} is that of a single role",
                expected="a file of that role, whose settings would not be used otherwise",
                remedy="Declare it in the application file: `kafka_config_files: {role: file}`.",
            )
        return self.file or default


def check_config_files(
    file: str | None, files: Mapping[Role, str], conn_ids: Mapping[Role, str], roles: tuple[Role, ...]
) -> None:
    """Check what an application file says of mounted files.

    :param file: `kafka_config_file`.
    :param files: `kafka_config_files`.
    :param conn_ids: `kafka_conn_ids`.
    :param roles: those that run Spark jobs.
    :raises ValueError: in the words of a message about the file.
    """
    if idle := [role for role in files if role not in roles]:
        raise ValueError(
            f"found a file of role {idle[0]} in `kafka_config_files`; expected files of {' and '.join(roles)}, "
            "which run Spark jobs. Delete it."
        )
    if file is not None and (own := [role for role in roles if role in conn_ids and role not in files]):
        raise ValueError(
            f"found `kafka_config_file` for all roles, while role {own[0]} has a connection of its own; expected a "
            f"file of that role. Declare `kafka_config_files: {{{own[0]}: file}}`."
        )
