"""The application file of a pipeline that this project runs itself (``runtime: spark``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from kafka_rescale.core.acls import Role
from kafka_rescale.core.fields import Name, Strict, place


class DeclaredBackfill(Strict):
    """How past intervals are processed once more, each by a generation of its own.

    :param outputs: where the records of every output go instead, by topic; those topics have to exist.
    :param history_seconds: how far before an interval records still decide about its results, as the size and
        grace of windows. Without it the replay begins at the beginning of the log, all of which has to be there.
    """

    outputs: dict[Name, Name]
    history_seconds: int | None = Field(default=None, ge=0)


class PipelineApplication(Strict):
    """One application file of a pipeline.

    :param application_id: of the pipeline; its consumer group, the prefix of its transactional ids and of its
        internal topics.
    :param kafka_conn_ids: Airflow connections of roles that have a principal of their own.
    :param pipeline: ``module:name`` of a pipeline, or of a function without arguments that returns one.
    :param num_stream_threads: with how many the client is started; each is one ``spark-submit``.
    :param state_dir: an absolute path or a URI that Arrow can write to. Executors that don't see the same place
        restore from the changelogs what they lack.
    :param schedule: cron expression or preset; ``@continuous`` for one run after the other; without one a run is
        triggered.
    :param backfill: how past intervals are processed once more; without it they can't be.
    """

    application_id: Name
    runtime: Literal["spark"]
    kafka_conn_id: str = "kafka_default"
    kafka_conn_ids: dict[Role, str] = Field(default_factory=dict)
    spark_conn_id: str = "spark_default"
    pipeline: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    num_stream_threads: int = Field(default=1, ge=1, le=1_000, alias="num.stream.threads")
    state_dir: str = Field(alias="state.dir")
    spark_conf: dict[str, str] = Field(default_factory=dict)
    schedule: str | None = None
    backfill: DeclaredBackfill | None = None
    tags: tuple[str, ...] = ()

    @field_validator("state_dir")
    @classmethod
    def _place(cls, value: str) -> str:
        return place(value)

    def kafka_conn_id_of(self, role: Role) -> str:
        """Return the id of the Airflow connection by which a role reaches the brokers."""
        return self.kafka_conn_ids.get(role, self.kafka_conn_id)
