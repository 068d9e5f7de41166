"""What a job is asked to process."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.values import Value

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication


class ProcessRequest(Value):
    """One thread's part in one level of a pipeline.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: where state is kept between runs.
    :param thread: the stream thread.
    :param began_as: the thread that it replaces in this run, if any: the two share one result.
    :param level: counting from 1; level 1 are the sub-topologies that no other one feeds.
    :param backfill: a past interval, processed by a generation of its own.
    :param cache_bytes: of the record cache of all threads of the thread's client together.
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
        """Return what a declared client's thread is asked to do.

        :raises InvalidInput: the file has no such client.
        """
        return cls(
            pipeline=application.pipeline,
            state_dir=application.member_of(thread).state_dir,
            thread=thread,
            level=level,
            began_as=began_as,
            backfill=backfill,
            # The results of a backfill are told from those before its interval record by record.
            cache_bytes=0 if backfill is not None else application.statestore_cache_max_bytes,
        )

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"process/{self.level}/{self.began_as or self.thread}"


class ClientRequest(Value):
    """A job on the state that one client keeps.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: where the client keeps its state.
    :param client_id: of the client.
    """

    job: ClassVar[str]
    pipeline: str
    state_dir: str
    client_id: str

    @classmethod
    def of(cls, application: PipelineApplication, client_id: str, **further: bool) -> Self:
        """Return the request to the job of a declared client.

        :param further: fields of a kind of request.
        :raises InvalidInput: the file has no such client.
        """
        state_dir = application.member(client_id).state_dir
        return cls(pipeline=application.pipeline, state_dir=state_dir, client_id=client_id, **further)

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"{self.job}/{self.client_id}"


class KeepWarmRequest(ClientRequest):
    """The standbys and warm-ups of one client."""

    job = "keep_warm"


class WarmUpRequest(ClientRequest):
    """The warm-up of the new processors that are split from those of one client.

    :param follows: whether the job goes on until the threads that write its sources have ended. Then the rest is
        small enough for the partitions to change hands, however much a run writes.
    """

    job = "warm_up_processors"
    follows: bool = False
