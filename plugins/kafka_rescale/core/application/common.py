"""What the application files of both runtimes have in common: name, connections, Spark, schedule and tags."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from kafka_rescale.core.application.config_files import SPARK_ROLES, KafkaOfJob, of_spark_jobs
from kafka_rescale.core.application.fields import ApplicationId, Strict, WholeNumber, checked_schedule
from kafka_rescale.core.application.secrets import SparkConf
from kafka_rescale.core.roles import Role


class ApplicationFile(Strict):
    """The base of an application file of either runtime.

    :param runtime: the runtime that the file is for. Each subclass allows only its own.
    :param kafka_conn_id: Airflow connection to the brokers.
    :param kafka_conn_ids: Airflow connections of roles that have a principal of their own.
    :param spark_conn_id: Airflow connection to Spark.
    :param spark_conf: configuration of the Spark jobs. It may have no secrets.
    :param autoscaling_enabled: whether the application follows by itself when inputs have grown (KIP-878).
    :param autoscaling_timeout_ms: how long that is retried without any success, from the first failure on.
    :param on_partition_expansion: ``module:name`` of a function of the old and the new number of partitions.
    :param tags: tags of its DAGs.
    """

    roles_of_jobs: ClassVar[tuple[Role, ...]] = SPARK_ROLES
    """The roles whose Spark jobs can be given a file with Kafka settings."""

    application_id: ApplicationId
    runtime: str
    kafka_conn_id: str = "kafka_default"
    kafka_conn_ids: dict[Role, str] = Field(default_factory=dict)
    kafka_config_files: dict[Role, str] = Field(default_factory=dict)
    spark_conn_id: str = "spark_default"
    spark_conf: SparkConf = Field(default_factory=dict)
    autoscaling_enabled: bool = Field(default=False, alias="partition.autoscaling.enabled")
    autoscaling_timeout_ms: WholeNumber = Field(default=900_000, ge=0, alias="partition.autoscaling.timeout.ms")
    on_partition_expansion: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    schedule: str | None = None
    tags: tuple[str, ...] = ()

    _schedule = field_validator("schedule")(checked_schedule)

    @field_validator("kafka_config_files")
    @classmethod
    def _check_config_files(cls, files: dict[Role, str]) -> dict[Role, str]:
        return of_spark_jobs(files, cls.roles_of_jobs)

    def kafka_conn_id_of(self, role: Role) -> str:
        """Return the id of the Airflow connection by which a role reaches the brokers."""
        return self.kafka_conn_ids.get(role, self.kafka_conn_id)

    def kafka_of_job(self, role: Role) -> KafkaOfJob:
        """Return where a role's Spark jobs get their Kafka settings from."""
        file = self.kafka_config_files.get(role)
        return KafkaOfJob(self.kafka_conn_id_of(role), file, role in self.kafka_conn_ids)
