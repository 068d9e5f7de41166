"""Find the Kafka connection for a command. Secrets come from files and the environment, never from arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import CONFIG_FILE_VARIABLE, CONFIG_VARIABLE, reason_of
from kafka_rescale.operations.application.load import load_application


def connection_for(application: ApplicationFile, config: Path | None, role: Role) -> KafkaConnection:
    """Return the connection of a role.

    Its settings come from the first of these that exists: the file, the environment, the role's Airflow
    connection.

    :param config: A file of settings by their librdkafka names, as JSON or in properties format.
    :raises InvalidInput: There are no settings, or they can't be read.
    """
    if config is not None:
        return KafkaConnection.read(_from_file(config), f"--config {config}")
    if _in_environment():
        return KafkaConnection.from_environment()
    conn_id = application.kafka_conn_id_of(role)
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    if os.environ.get(variable, "").lstrip().startswith("{"):
        return KafkaConnection.read(_from_variable(variable), f"environment variable {variable}")
    from kafka_rescale.airflow.hooks.rescale import kafka_connection

    return kafka_connection(_from_airflow(conn_id, variable), conn_id)


def connections_of_others(
    application: Application, config: Path | None, configs: Mapping[Role, Path | None]
) -> tuple[dict[Role, KafkaConnection], str]:
    """Return the known connections of the roles other than ``plan``, and a line that names the other roles.

    Settings from ``--config`` or the environment belong to the person who calls the command. They say nothing
    about another role. Airflow's connections, in contrast, are those that the DAGs will use for each role.

    :param config: The settings file of ``plan``.
    :param configs: The settings file of each other role. A role without a file is looked up in Airflow, but only
        if ``plan`` is looked up there too.
    :raises InvalidInput: A file can't be read.
    """
    own = config is not None or _in_environment()
    found: dict[Role, KafkaConnection] = {}
    for role, file in configs.items():
        if file is None and own:
            continue
        try:
            found[role] = connection_for(application, file, role)
        except InvalidInput:
            if file is not None:
                raise
    # A role without a connection of its own works as the principal that plans, whose permissions are checked.
    missing = [role for role in configs if role not in found and role in application.kafka_conn_ids]
    options = " ".join(f"--config-{role} FILE" for role in missing)
    line = (
        f"permissions of {', '.join(missing)} were not checked: these roles have connections of their own; "
        f"name their settings: {options}"
    )
    return found, line if missing else ""


def _in_environment() -> bool:
    return bool(os.environ.get(CONFIG_FILE_VARIABLE) or os.environ.get(CONFIG_VARIABLE))


def _from_file(path: Path) -> Mapping[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if text.lstrip().startswith("{") else _properties(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"--config {path}",
            found=reason_of(error),
            expected="JSON or lines `name=value` with librdkafka settings such as bootstrap.servers",
            remedy="Correct the file.",
        ) from None
    return dict(found)


def _properties(text: str) -> dict[str, str]:
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.split("=", 1) for line in lines if line and not line.startswith(("#", "!"))]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a line without =")
    return {name.strip(): value.strip() for name, value in pairs}


def _from_variable(variable: str) -> Mapping[str, str]:
    try:
        extra = json.loads(os.environ[variable]).get("extra") or {}
        found = json.loads(extra) if isinstance(extra, str) else extra
        return dict(found)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"environment variable {variable}",
            found=f"{type(error).__name__} when reading it",
            expected='JSON such as {"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9092"}}',
            remedy="Correct it.",
        ) from None


def _from_airflow(conn_id: str, variable: str) -> Mapping[str, str]:
    try:
        from airflow.sdk import BaseHook

        return dict(BaseHook.get_connection(conn_id).extra_dejson)
    except Exception as error:  # Airflow is not installed, has no database here, or has no such connection.
        is_unknown = type(error).__name__ == "AirflowNotFoundException"
        told = "no such connection in Airflow" if is_unknown else f"no Airflow here ({type(error).__name__})"
        raise InvalidInput(
            f"Kafka connection {conn_id!r}",
            found=f"{told}, no --config, and no settings in the environment",
            expected="librdkafka settings such as bootstrap.servers",
            remedy=f"Use --config FILE, set {CONFIG_FILE_VARIABLE} or {variable}, or correct `kafka_conn_id`.",
        ) from None


def opened(file: Path, config: Path | None, role: Role = Role.PLAN) -> tuple[Application, KafkaConnection]:
    """Return the application and a checked connection. The file is checked before anything connects."""
    application = load_application(file)
    connection = connection_for(application, config, role)
    connection.check()
    return application, connection
