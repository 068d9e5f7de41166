"""How a Spark job is given the Kafka connection, so that nobody else sees it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

from kafka_rescale.airflow.spark_connection import deploy_mode_of
from kafka_rescale.core.config_files import SPARK_ROLES, KafkaOfJob
from kafka_rescale.core.errors import InvalidInput

if TYPE_CHECKING:
    from kafka_rescale.core.acls import Role
    from kafka_rescale.core.application import Application
    from kafka_rescale.core.pipeline_application import PipelineApplication
    from kafka_rescale.kafka.connection import KafkaConnection

CONFIG = "KAFKA_RESCALE_KAFKA_CONFIG"
CONFIG_FILE = "KAFKA_RESCALE_KAFKA_CONFIG_FILE"


def kafka_arguments(application: Application | PipelineApplication, role: Role) -> dict[str, Any]:
    """Return what operators that submit Spark jobs are told of a role's Kafka settings."""
    of_job = application.kafka_of_job(role)
    return {
        "kafka_conn_id": of_job.conn_id,
        "kafka_config_file": of_job.file,
        "takes_shared_file": not of_job.is_own,
    }


def kafka_environment(
    of_job: KafkaOfJob, connection: KafkaConnection, conn_id: str, master: str, mode: str | None
) -> dict[str, str]:
    """Return the variables by which a job is told the settings.

    :param connection: the Airflow connection of the job's role.
    :param conn_id: the Spark connection.
    :param master: that it names.
    :param mode: deploy mode, if not the connection's.
    :raises InvalidInput: there is no way in which nobody would see them.
    """
    file = mounted_file(of_job, conn_id, master, mode)
    if file is not None:
        return {CONFIG_FILE: file}
    text = json.dumps(dict(connection.config))
    mask_secret(text)
    # Else the job would take the file that its environment has inherited.
    return {CONFIG: text, CONFIG_FILE: ""}


def mounted_file(of_job: KafkaOfJob, conn_id: str, master: str, mode: str | None = None) -> str | None:
    """Return the file that the job reads its settings from; None where its environment can hold them unseen.

    :raises InvalidInput: one is needed, and there is none that holds this role's settings.
    """
    if of_job.file is not None:
        return of_job.file
    private = master.startswith(("local", "spark://"))
    mode = mode or deploy_mode_of(conn_id)
    if private and mode != "cluster":
        return None
    file = of_job.mounted(os.environ.get(CONFIG_FILE), CONFIG_FILE)
    if file is None:
        raise InvalidInput(
            f"Spark connection {conn_id!r}",
            found=f"master {master}, deploy mode {mode}",
            expected="client mode on a local or standalone master, or `kafka_config_file`",
            remedy="Mount the Kafka properties as JSON for the driver and name the file in the application file, "
            f"or for all applications in {CONFIG_FILE}.",
        )
    return file


def require_kafka_for_spark(application: Application, master: str) -> None:
    """Refuse what would only be found when the jobs of an expansion are submitted.

    :param master: of the application's Spark.
    :raises InvalidInput: the settings of a role can't reach its jobs.
    """
    for role in SPARK_ROLES:
        mounted_file(application.kafka_of_job(role), application.spark_conn_id, master)
