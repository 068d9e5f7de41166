"""The application file of a pipeline that this project runs itself (``runtime: spark``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from kafka_rescale.core.acls import Role
from kafka_rescale.core.fields import Name, PartitionCount, Strict, place


class PipelineApplication(Strict):
    """One application file of a pipeline.

    :param application_id: of the pipeline; its consumer group, the prefix of its transactional ids and of its
        internal topics.
    :param kafka_conn_ids: Airflow connections of roles that have a principal of their own.
    :param pipeline: ``module:name`` of a pipeline, or of a function without arguments that returns one.
    :param num_stream_threads: with how many the client is started; each is one ``spark-submit``.
    :param state_dir: an absolute path or a URI that Arrow can write to. Executors that don't see the same place
        restore from the changelogs what they lack.
    :param linear_hashing: inputs whose producers place keys by linear hashing, and outputs that shall be
        written so, with the partition count that each was created with.
    :param growth_settle_ms: so long after a source topic has grown, a producer may still not know: its
        `metadata.max.age.ms` and `delivery.timeout.ms` together.
    :param acceptable_recovery_lag: offsets that a new processor may be behind when it takes its partitions over.
    :param schedule: cron expression or preset; ``@continuous`` for one run after the other; without one a run is
        triggered.
    """

    application_id: Name
    runtime: Literal["spark"]
    kafka_conn_id: str = "kafka_default"
    kafka_conn_ids: dict[Role, str] = Field(default_factory=dict)
    spark_conn_id: str = "spark_default"
    pipeline: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    num_stream_threads: int = Field(default=1, ge=1, le=1_000, alias="num.stream.threads")
    state_dir: str = Field(alias="state.dir")
    linear_hashing: dict[Name, PartitionCount] = Field(default_factory=dict)
    growth_settle_ms: int = Field(default=420_000, ge=0, alias="partition.growth.settle.ms")
    acceptable_recovery_lag: int = Field(default=10_000, ge=0, alias="acceptable.recovery.lag")
    spark_conf: dict[str, str] = Field(default_factory=dict)
    schedule: str | None = None
    tags: tuple[str, ...] = ()

    @field_validator("state_dir")
    @classmethod
    def _place(cls, value: str) -> str:
        return place(value)

    def kafka_conn_id_of(self, role: Role) -> str:
        """Return the id of the Airflow connection by which a role reaches the brokers."""
        return self.kafka_conn_ids.get(role, self.kafka_conn_id)
