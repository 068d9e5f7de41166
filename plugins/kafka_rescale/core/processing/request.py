"""The requests to the jobs of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.values import Value

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication


class ProcessRequest(Value):
    """The part of one thread in one level of a pipeline.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: the directory that keeps state between runs.
    :param thread: the stream thread.
    :param level: the level, counting from 1. Level 1 has the sub-topologies that no other sub-topology feeds.
    :param began_as: the thread that ``thread`` replaces in this run. Both share one result. Empty if ``thread``
        replaces none.
    :param backfill: the past interval that a separate generation processes. None for a run of the pipeline itself.
    :param cache_bytes: the size of the record cache of all threads of the client together.
    """

    pipeline: str
    state_dir: str
    thread: str
    level: int
    began_as: str = ""
    backfill: Backfill | None = None
    cache_bytes: int = 0

    @classmethod
    def of(
        cls,
        application: PipelineApplication,
        thread: str,
        level: int,
        *,
        began_as: str = "",
        backfill: Backfill | None = None,
    ) -> Self:
        """Return the request to a thread of a client that the file declares.

        :raises InvalidInput: the file has no such client.
        """
        return cls(
            pipeline=application.pipeline,
            state_dir=application.member_of(thread).state_dir,
            thread=thread,
            level=level,
            began_as=began_as,
            backfill=backfill,
            # A backfill decides for each record whether its results belong to the interval. A cache would merge
            # results of several records.
            cache_bytes=0 if backfill is not None else application.statestore_cache_max_bytes,
        )

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"process/{self.level}/{self.began_as or self.thread}"


class ClientRequest(Value):
    """A job on the state that one client keeps.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: the directory of the client's state.
    :param client_id: the id of the client.
    """

    job: ClassVar[str]
    pipeline: str
    state_dir: str
    client_id: str

    @classmethod
    def of(cls, application: PipelineApplication, client_id: str, **further: bool) -> Self:
        """Return the request to the job of a client that the file declares.

        :param further: the further fields that this kind of request has.
        :raises InvalidInput: the file has no such client.
        """
        state_dir = application.member(client_id).state_dir
        return cls(pipeline=application.pipeline, state_dir=state_dir, client_id=client_id, **further)

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"{self.job}/{self.client_id}"


class KeepWarmRequest(ClientRequest):
    """The request to the job that keeps the standbys and warm-ups of one client up to date."""

    job = "keep_warm"


class WarmUpRequest(ClientRequest):
    """The request to the job that warms up the new processors which are split from the processors of one client.

    :param follows: whether the job goes on until the threads that write its sources have ended. If it does, few
        records are left when the partitions change hands, however much a run writes.
    """

    job = "warm_up_processors"
    follows: bool = False
