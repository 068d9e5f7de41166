"""What a job is asked to process."""

from __future__ import annotations

from kafka_rescale.core.values import Value


class ProcessRequest(Value):
    """One thread's part in one level of a pipeline.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: where state is kept between runs.
    :param thread: the stream thread.
    :param level: counting from 1 at the sub-topologies that no other one feeds.
    """

    pipeline: str
    state_dir: str
    thread: str
    level: int

    @property
    def key(self) -> str:
        """The name of the job's result."""
        return f"process/{self.level}/{self.thread}"


class WarmUpRequest(Value):
    """The warm-up of a pipeline's new processors.

    :param pipeline: ``module:name`` of the pipeline.
    :param state_dir: where state is kept between runs.
    """

    pipeline: str
    state_dir: str
