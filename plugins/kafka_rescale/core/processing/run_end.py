"""The end of the stream threads of a run, as a job that works beside them finds it out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import Processing

SILENT_SECONDS = 60.0
"""A run that reports nothing new for so long counts as ended. Jobs at work report every few seconds. But a job
with nothing to do never begins, and a killed job never reports its end."""
ENDED = frozenset({"done", "failed"})


class RunEnd:
    """Looks at the results of a run's jobs again and again.

    :param jobs: the jobs that have to end, by the names of their results.
    :param silent_seconds: a run that reports nothing new for so long counts as ended.
    """

    def __init__(self, run: str, jobs: Collection[str], silent_seconds: float = SILENT_SECONDS) -> None:
        self._run, self._jobs, self._silent_seconds = run, jobs, silent_seconds
        self._seen: dict[str, JobResult] = {}
        self._since: float | None = None

    def look(self, results: Mapping[str, JobResult], now: float) -> bool:
        """Return whether the jobs have ended.

        :param results: the results of all jobs of the application, by name.
        :param now: the time in seconds, by a clock that only goes forward.
        """
        its = {n: r for n, r in results.items() if r.run == self._run and n.startswith("process/")}
        if self._since is None or its != self._seen:
            self._seen, self._since = its, now
        if all(job in its and its[job].state in ENDED for job in self._jobs):
            return True
        return now - self._since >= self._silent_seconds


def jobs_of(processing: Processing, levels: Collection[Collection[int]], tasks: Collection[str]) -> set[str]:
    """Return the names of the results of the jobs that run these tasks.

    :param levels: the sub-topologies of each level, in order.
    :param tasks: the ids of the tasks.
    """
    return {
        f"process/{level}/{thread.replaces or thread.name}"
        for level, sub_topologies in enumerate(levels, start=1)
        for thread in processing.threads
        if any(str(task) in tasks for task in processing.tasks_of(thread.name, sub_topologies))
    }
