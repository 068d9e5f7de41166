"""What a job is asked to process."""

from __future__ import annotations

from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.values import Value


class ProcessRequest(Value):
    """One thread's part in one level of a pipeline.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: where state is kept between runs.
    :param thread: the stream thread.
    :param level: counting from 1 at the sub-topologies that no other one feeds.
    :param backfill: a past interval, which the application's generation for it processes.
    """

    pipeline: str
    state_dir: str
    thread: str
    level: int
    backfill: Backfill | None = None

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"process/{self.level}/{self.thread}"
