"""The application file of a pipeline that this project runs itself (``runtime: spark``)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from kafka_rescale.core.application.clients import DeclaredClient, check_clients
from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.fields import (
    Name,
    PartitionCount,
    Strict,
    WholeNumber,
    checked_pipeline_schedule,
    checked_schedule,
    place,
)
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.assignment.configs import RACK, AssignmentConfigs
from kafka_rescale.core.assignment.stream_threads import Decision, client_of
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.roles import Role

ExceptionHandler = Annotated[str, Field(pattern=rf"^({'|'.join(Decision)}|[\w.]+:\w+)$")]


class DeclaredBackfill(Strict):
    """How past intervals are processed once more, each by a generation of its own.

    :param outputs: by output topic, the topic that its records go to instead; these topics have to exist.
    :param history_seconds: how long before an interval a record can still influence its results: for example, the
        size and grace of windows. Without this field, the replay begins at the beginning of the log, and needs all
        of the log.
    """

    outputs: dict[Name, Name]
    history_seconds: WholeNumber | None = Field(default=None, ge=0)


class PipelineApplication(ApplicationFile):
    """One application file of a pipeline.

    :param application_id: id of the pipeline. It is also its consumer group, and the prefix of its transactional
        ids and of its internal topics.
    :param kafka_config_files: JSON files with the Kafka settings of ``copy``, mounted for drivers of Spark jobs
        if the connection can't be passed to them without showing it. They replace the file that the environment
        names.
    :param pipeline: ``module:name`` of a pipeline, or of a function without arguments that returns one.
    :param num_stream_threads: number of threads with which each client starts; each thread is one
        ``spark-submit``.
    :param state_dir: an absolute path or a URI that Arrow can write to. Executors that don't see the same place
        restore missing state from the changelogs. If there are `clients`, each has its own instead.
    :param clients: the clients. If the file has none, there is one client with the application's id.
    :param num_standby_replicas: number of copies of each task's state on other clients.
    :param max_warmup_replicas: number of tasks that are warmed up at a time to be moved, beside the standbys.
    :param acceptable_recovery_lag: how many records a client may be behind and still take a task over at once;
        also how many offsets a new processor may be behind when it takes its partitions over.
    :param statestore_cache_max_bytes: size of each client's record cache, over all its threads. With 0, the
        default, there is no cache, and every update is written.
    :param probing_rebalance_interval_ms: a run is triggered after this time if a task is being warmed up.
    :param rack_aware_assignment_tags: tags whose values shall differ between the copies of a task.
    :param rack_standby_task_assignor: `module:Class` whose `assign_standby_task_to_racks(source_tasks,
        client_rack_ids)` returns the tasks whose standbys each rack may have; all clients need a `rack.id`.
    :param uncaught_exception_handler: what happens after a thread's `spark-submit` has failed or was killed:
        `REPLACE_THREAD`, `SHUTDOWN_CLIENT` or `SHUTDOWN_APPLICATION`; or `module:name` of a function that gets the
        exception and returns one of these.
    :param max_poll_interval_ms: how long the job of a thread may go without a sign of progress. Then it is ended,
        and counts as a dead thread. A sign is a task that begins or ends, or a commit; a task also commits while
        it restores its state. The wait for the job's start counts, too.
    :param keep_warm_schedule: when standbys and warm-ups read the new records of the changelogs: a cron expression
        or preset, but not ``@continuous``.
    :param linear_hashing: inputs whose producers place keys by linear hashing, and outputs that shall be written
        in this way. Each has the partition count that it was created with.
    :param static_partitioners: inputs whose partitioner is static, with `module:function` of topic, key and count.
        The function must place keys as the partitioner does: in the same partition, whatever the count.
    :param growth_settle_ms: how long after the growth of a source topic a producer may still not know it: its
        `metadata.max.age.ms` and `delivery.timeout.ms` together.
    :param autoscaling_enabled: whether a run adds processors when inputs have grown, one per partition (KIP-878).
    :param autoscaling_timeout_ms: how long that is retried without any success, from the first failure on
        (KIP-878).
    :param on_partition_expansion: `module:name` of a function of the old and the new number of tasks, which is
        called once every sub-topology follows from its inputs again (KIP-878).
    :param schedule: cron expression or preset; ``@continuous`` starts one run after the other. Without a schedule,
        runs are only triggered.
    :param backfill: how past intervals are processed once more. Without this field, they can't be.
    """

    roles_of_jobs: ClassVar[tuple[Role, ...]] = (Role.COPY,)

    runtime: Literal["spark"]
    pipeline: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    num_stream_threads: WholeNumber = Field(default=1, ge=1, le=1_000, alias="num.stream.threads")
    state_dir: str | None = Field(default=None, alias="state.dir")
    clients: tuple[DeclaredClient, ...] = ()
    statestore_cache_max_bytes: WholeNumber = Field(default=0, ge=0, alias="statestore.cache.max.bytes")
    num_standby_replicas: WholeNumber = Field(default=0, ge=0, alias="num.standby.replicas")
    max_warmup_replicas: WholeNumber = Field(default=2, ge=1, alias="max.warmup.replicas")
    acceptable_recovery_lag: WholeNumber = Field(default=10_000, ge=0, alias="acceptable.recovery.lag")
    probing_rebalance_interval_ms: WholeNumber = Field(
        default=600_000, ge=60_000, alias="probing.rebalance.interval.ms"
    )
    rack_aware_assignment_tags: tuple[str, ...] = Field(default=(), alias="rack.aware.assignment.tags")
    rack_standby_task_assignor: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = Field(
        default=None, alias="rack.standby.task.assignor"
    )
    uncaught_exception_handler: ExceptionHandler = Field(
        default=Decision.REPLACE_THREAD.value, alias="uncaught.exception.handler"
    )
    max_poll_interval_ms: WholeNumber = Field(default=1_800_000, ge=60_000, alias="max.poll.interval.ms")
    keep_warm_schedule: str = "*/5 * * * *"
    linear_hashing: dict[Name, PartitionCount] = Field(default_factory=dict)
    static_partitioners: dict[Name, Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]] = Field(default_factory=dict)
    growth_settle_ms: WholeNumber = Field(default=420_000, ge=0, alias="partition.growth.settle.ms")
    backfill: DeclaredBackfill | None = None

    _schedule = field_validator("schedule")(checked_pipeline_schedule)
    _keep_warm_schedule = field_validator("keep_warm_schedule")(checked_schedule)

    @field_validator("state_dir")
    @classmethod
    def _place(cls, value: str | None) -> str | None:
        return value if value is None else place(value)

    @model_validator(mode="after")
    def _check_clients(self) -> Self:
        check_clients(self.clients, self.state_dir, self.rack_aware_assignment_tags)
        if self.rack_standby_task_assignor is not None and not self._has_racks:
            raise WrongValue(
                found="`rack.standby.task.assignor` without racks",
                expected="`rack.id` of every client",
                remedy="Add them.",
            )
        return self

    @property
    def _has_racks(self) -> bool:
        return any(client.rack_id is not None for client in self.clients)

    @property
    def members(self) -> tuple[DeclaredClient, ...]:
        """The clients; a file without `clients` has one."""
        alone = {"client.id": self.application_id, "state.dir": self.state_dir}
        return self.clients or (DeclaredClient.model_validate(alone),)

    @property
    def client_ids(self) -> list[str]:
        """The ids of the clients."""
        return [client.client_id for client in self.members]

    @property
    def moved_outputs(self) -> tuple[str, ...]:
        """Where backfills write."""
        return () if self.backfill is None else tuple(self.backfill.outputs.values())

    @property
    def assignment_configs(self) -> AssignmentConfigs:
        """The settings that decide an assignment."""
        return AssignmentConfigs(
            acceptable_recovery_lag=self.acceptable_recovery_lag,
            max_warmup_replicas=self.max_warmup_replicas,
            num_standby_replicas=self.num_standby_replicas,
            probing_rebalance_interval_ms=self.probing_rebalance_interval_ms,
            rack_aware_assignment_tags=(RACK,) if self._has_racks else self.rack_aware_assignment_tags,
        )

    def threads_of(self, client: DeclaredClient) -> int:
        """Return the number of threads with which a client starts."""
        return client.num_stream_threads or self.num_stream_threads

    def member(self, client_id: str) -> DeclaredClient:
        """Return a client by its id.

        :raises InvalidInput: the file has no such client.
        """
        for client in self.members:
            if client.client_id == client_id:
                return client
        raise InvalidInput(
            f"client {client_id!r} of {self.application_id}",
            found="no such client in the application file",
            expected=f"one of {', '.join(client.client_id for client in self.members)}",
            remedy="Correct the name, or the file; to let a new run assign its tasks, clear `assign`.",
        )

    def member_of(self, thread: str) -> DeclaredClient:
        """Return the client of a thread.

        :raises InvalidInput: the file has no such client.
        """
        return self.member(client_of(thread))
