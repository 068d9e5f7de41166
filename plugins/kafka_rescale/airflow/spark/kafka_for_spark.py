"""Give a Spark job the same Kafka connection as the tasks have, so that no other user can see it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

from kafka_rescale.airflow.spark.connection import deploy_mode_of, require_spark_master
from kafka_rescale.core.application.config_files import KafkaOfJob, refuse_difference, refuse_other_secrets
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.spark.jobs.network import hint_of_network

if TYPE_CHECKING:
    from kafka_rescale.core.application.common import ApplicationFile
    from kafka_rescale.core.roles import Role
    from kafka_rescale.kafka.client.connection import KafkaConnection


def kafka_arguments(application: ApplicationFile, role: Role) -> dict[str, Any]:
    """Return a role's Kafka settings, as arguments of the operators that submit Spark jobs."""
    of_job = application.kafka_of_job(role)
    return {
        "kafka_conn_id": of_job.conn_id,
        "kafka_config_file": of_job.file,
        "takes_shared_file": not of_job.is_own,
    }


def kafka_environment(
    of_job: KafkaOfJob, connection: KafkaConnection, conn_id: str, master: str, mode: str | None = None
) -> dict[str, str]:
    """Return the environment variables that give a job its Kafka settings.

    :param of_job: Where the job's Kafka settings are.
    :param connection: The Airflow connection of the job's role.
    :param conn_id: The id of the Spark connection.
    :param master: The master that the Spark connection names.
    :param mode: The deploy mode; None for the mode of the Spark connection.
    :raises InvalidInput: The settings can't reach the job in secret, or the mounted file differs from the
        connection.
    """
    from kafka_rescale.kafka.client.settings_files import (
        CONFIG_FILE_VARIABLE,
        CONFIG_VARIABLE,
        EXPECTED_VARIABLE,
        as_word,
        environment_of,
        identity_here,
    )

    mode = mode or deploy_mode_of(conn_id)
    file = _mounted_file(of_job, conn_id, master, mode)
    if file is None:
        variables = environment_of(connection.config)
        mask_secret(variables[CONFIG_VARIABLE])
        return variables
    _check_file(file, of_job, connection, mode)
    # The job compares its file with this value, because the file may not be readable here.
    return {CONFIG_FILE_VARIABLE: file, EXPECTED_VARIABLE: as_word(identity_here(connection.config))}


def require_kafka_for_spark(
    application: ApplicationFile,
    connections: Mapping[Role, KafkaConnection],
    spark: Iterable[tuple[str, Mapping[str, str]]],
) -> str:
    """Check before a run changes anything that its Spark jobs can be submitted later.

    Return a hint for a person if the settings cross the network in the clear; empty if they don't.

    :param connections: The Kafka connections of the roles that run Spark jobs.
    :param spark: The Spark connections that may run them, each with settings beside those of the application.
    :raises InvalidInput: A Spark connection can't be used, or the settings of a role can't reach its jobs.
    """
    hints, masters = [], dict[str, str]()
    for conn_id, conf in spark:
        if conn_id not in masters:
            masters[conn_id] = _usable_master(conn_id)
            for role, connection in connections.items():
                kafka_environment(application.kafka_of_job(role), connection, conn_id, masters[conn_id])
        hints.append(hint_of_network(masters[conn_id], {**application.spark_conf, **conf}))
    return next(filter(None, hints), "")


def _usable_master(conn_id: str) -> str:
    try:
        return require_spark_master(conn_id)
    except Outage as missing:
        # Nothing has been touched yet, so a person hears at once of a name that is wrong.
        raise InvalidInput.of(missing.complaint) from missing


def _mounted_file(of_job: KafkaOfJob, conn_id: str, master: str, mode: str) -> str | None:
    """Return the file that the job reads its settings from; None if its environment can hold them in secret."""
    from kafka_rescale.kafka.client.settings_files import CONFIG_FILE_VARIABLE

    if of_job.file is not None:
        return of_job.file
    if _is_private(master) and mode != "cluster":
        return None
    file = of_job.mounted(os.environ.get(CONFIG_FILE_VARIABLE), CONFIG_FILE_VARIABLE)
    if file is None:
        raise InvalidInput(
            f"Spark connection {conn_id!r}",
            found=f"master {master}, deploy mode {mode}",
            expected="client mode on a local or standalone master without yarn or k8s in its name, "
            "or a mounted file",
            remedy="Mount the Kafka properties as JSON for the driver. Name the file in `kafka_config_files`, "
            f"or for all applications in {CONFIG_FILE_VARIABLE}.",
        )
    return file


def _is_private(master: str) -> bool:
    """Return whether the provider keeps the environment off the command line.

    The provider decides that by words in the name of the master.
    """
    return master.startswith(("local", "spark://")) and not any(word in master for word in ("yarn", "k8s"))


def _check_file(file: str, of_job: KafkaOfJob, connection: KafkaConnection, mode: str) -> None:
    """Compare a file with the connection. In cluster mode this is skipped if the file is not on this machine."""
    from kafka_rescale.kafka.client.settings_files import identity_here, settings_in

    if mode == "cluster" and not Path(file).exists():
        return
    what = f"Kafka settings for Spark jobs, {file}"
    settings = settings_in(file, what)
    refuse_difference(what, identity_here(settings), identity_here(connection.config), of_job.connection)
    refuse_other_secrets(what, settings, connection.config, of_job.connection)
