"""What the jobs share: arguments, the plan from the journal, results in the control topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.control.job_results import COPYING, JobResult, Worked
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage, RescaleError
from kafka_rescale.core.expansion.bridge_progress import AT_WORK
from kafka_rescale.core.expansion.lost_records import no_journal
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.executors import missing_executor
from kafka_rescale.spark.jobs.session import copy_session, require_packages, slots
from kafka_rescale.spark.jobs.task_errors import from_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
log = logging.getLogger("kafka_rescale.job")

REPORT_SECONDS = 3.0
SIGN_SECONDS = 0.5
"""Time between two signs of life within the pause. A cutover gives up if several are missing (``jobs_beside``)."""
WAITED_FOR = frozenset({"warm_up", "catch_up"})
"""A gate waits until the lags of these jobs are acceptable."""


class Progress(Protocol):
    """Tells how far a job is."""

    def read(self) -> Snapshot:
        """Return how far the job is now."""
        ...


class Job:
    """One attempt at a job.

    :param name: ``restore``, ``warm_up``, ``catch_up``, ``bridge``, ``rehearse``, ``move``, ``prove``,
        ``snapshot``, ``process``, ``warm_up_processors`` or ``keep_warm``.
    """

    def __init__(self, name: str, arguments: Arguments, connection: KafkaConnection) -> None:
        self.name, self.arguments, self.connection = name, arguments, connection
        self.key = name if arguments.stage is None else f"{name}/{arguments.stage}"
        self.control = ControlTopic(connection, arguments.application)
        self._snapshot: Snapshot | None = None
        self._state, self._detail = "running", ""
        self._results: Mapping[str, JobResult] | None = None
        self._lags = LagHistory()
        self._threshold = arguments.acceptable_lag if name in WAITED_FOR else None

    def part(self, stage: int) -> Job:
        """Return the part of this job for one stage; the part leaves results of its own."""
        part = Job(self.name, replace(self.arguments, stage=stage), self.connection)
        part._results = self._results
        return part

    def journal(self) -> Journal:
        """Return the journal as it is now.

        :raises UnsafeState: no expansion has begun.
        """
        return self._journal(self.control.read())

    def own_journal(self, *, needs_lease: bool = False) -> Journal:
        """Return the journal for the beginning of the job, before its first result.

        If a person clears a task of an earlier run, its job must not take another run's expansion for its own: it
        would fence the jobs of that run. If nobody holds the lease, the phase says what is left to do.

        :param needs_lease: whether the job needs a lease that is held as long as the expansion is in progress.
        :raises Fenced: another run holds the lease, or nobody does although the job needs it.
        :raises UnsafeState: no expansion has begun.
        """
        state = self.control.read()
        journal = self._journal(state)
        self._results = state.results
        holder = state.lease.holder if state.lease is not None else ""
        if self.is_taken_over(holder) or (needs_lease and not holder and journal.in_progress):
            raise self.superseded(holder)
        return journal

    def is_taken_over(self, holder: str) -> bool:
        """Return whether another run than this job's has the lease.

        :param holder: holder of the lease; empty if it is free.
        """
        return holder not in {"", self.arguments.run}

    def superseded(self, holder: str) -> Fenced:
        """Return the error that ends a job whose run does not have the lease.

        :param holder: as in ``is_taken_over``.
        """
        return Fenced(
            f"{self.key} of {self.arguments.run}",
            found=f"the lease held by {holder or 'nobody'}",
            expected="it to be held by this run: the expansion was rolled back, or another run has taken over",
            remedy="Nothing to do here. What is copied stays. The run that holds the lease goes on with it; if "
            "nobody holds it, trigger the expansion again.",
        )

    def spark(self) -> SparkSession:
        """Return the session of this attempt, once an executor has run a task.

        :raises InvalidInput: an executor lacks a package.
        """
        a = self.arguments
        session = copy_session(self.key, a.application, a.run, a.attempt)
        self.run_beside(lambda: require_packages(session.sparkContext), self._tell_wait)
        return session

    def parallelism(self, spark: SparkSession) -> int:
        """Return how many tasks may run at a time."""
        return self.arguments.parallelism or slots(spark.sparkContext)

    def put(
        self,
        state: str,
        snapshot: Snapshot | None = None,
        detail: str = "",
        records: Change | None = None,
        *,
        seeded: int = 0,
        failure: JobFailure | None = None,
    ) -> None:
        """Leave a result. Without a snapshot, the snapshot of the last call stays.

        :param records: records of a concern that is this job's own; they are written with the result.
        :param seeded: how many of the copied records are rows of snapshots.
        :param failure: the error that has ended the job.
        :raises Fenced: a newer attempt has begun.
        """
        self._state, self._detail = state, detail
        self._snapshot = snapshot or self._snapshot
        if snapshot is not None and snapshot.partitions:
            self._lags = self._lags.observed(snapshot.partitions, now_ms(), self._threshold)
        known = self._snapshot or Snapshot((), 0, 0.0)
        found = self._result(
            state,
            records=known.records,
            seeded=seeded,
            failure=failure,
            bytes=known.bytes,
            seconds=round(known.seconds, 3),
            as_of_ms=known.as_of_ms,
            partitions=known.partitions,
            detail=detail,
            waits=missing_executor() if state in AT_WORK else "",
            lags=self._lags,
            progressed_ms=known.progressed_ms,
            seconds_left=known.seconds_left,
            before=self._before(),
        )
        self.control.put_result(found, records)

    def sign(self) -> None:
        """Give a sign of life, without asking the brokers anything before.

        :raises Fenced: a newer attempt has begun.
        """
        self.control.put_sign(self._result("running"))

    def finish(self, *, records: int, began: float, changes: Change | None = None, **fields: Any) -> None:
        """Write the last result of a job that does not copy.

        :param records: how many records were processed.
        :param began: when the job began, by ``time.monotonic``.
        :param changes: changes of a concern that is this job's own; they are written with the result.
        :param fields: further fields of the result.
        :raises Fenced: a newer attempt has begun.
        """
        seconds = round(time.monotonic() - began, 3)
        self.control.put_result(self._result("done", records=records, seconds=seconds, **fields), changes)

    def on_partitions(
        self,
        items: Sequence[Any],
        action: Callable[[Iterator[Any]], Iterable[T]],
        beat: Callable[[], None] = lambda: None,
    ) -> list[T]:
        """Run an action on each item, one Spark partition each, and return what they yield.

        Without items, Spark is not started.

        :param beat: called every few seconds beside the action, as in ``run_beside``.
        :raises RescaleError: the error that a task raised.
        """
        if not items:
            return []
        elements = self.spark().sparkContext.parallelize(items, len(items))
        done: list[T] | None = self.run_beside(lambda: elements.mapPartitions(action).collect(), beat)
        return done or []

    def run_reported(self, action: Callable[[], T], progress: Progress) -> T:
        """Run a Spark action and report its progress until it ends.

        :raises RescaleError: the error that a task raised.
        """
        done = self.run_beside(action, lambda: self.report(progress, lambda _: "running"))
        assert done is not None
        return done

    def run_beside(
        self,
        action: Callable[[], T],
        beat: Callable[[], None],
        *,
        until: Callable[[], bool] = lambda: False,
        seconds: float = REPORT_SECONDS,
        is_paused: Callable[[], bool] = lambda: False,
    ) -> T | None:
        """Run a Spark action and call ``beat`` beside it, until the action ends or need not go on.

        :param beat: called again and again; a short outage in it is only logged.
        :param until: asked after every beat, also after one that failed: a person may have rolled back to spare
            the brokers. If the answer is true, this returns None, and the action ends with the process.
        :param seconds: time between two beats.
        :param is_paused: whether the application is stopped. Then signs of life take the place of the beats: they
            come more often, and don't ask brokers questions that could take long.
        :raises RescaleError: the error that a task raised.
        """
        with_action = ThreadPoolExecutor(max_workers=1)
        running = with_action.submit(action)
        beaten = time.monotonic()
        while not wait([running], timeout=min(seconds, SIGN_SECONDS)).done:
            with _outages_logged():
                if is_paused():
                    self.sign()
                    continue
                if time.monotonic() - beaten < seconds:
                    continue
                beaten = time.monotonic()
                with _outages_logged():
                    beat()
                if until():
                    return None
        try:
            return running.result()
        except Exception as failure:
            cause = from_text(failure)
            raise cause from (cause.__cause__ if isinstance(cause, RescaleError) else failure)

    def report(
        self,
        progress: Progress,
        state_of: Callable[[Snapshot], str],
        records: Callable[[Snapshot], Change] = lambda _: {},
        detail: Callable[[Snapshot], str] = lambda _: "",
    ) -> None:
        """Print and publish how far the job is. If that can't be read, publish only the records.

        :param records: returns the records to write with the report; see ``put``.
        :param detail: returns what a person should know besides.
        :raises Outage: how far the job is could not be read, or not be published.
        """
        try:
            snapshot = progress.read()
        except Outage:
            self._put_records(records)
            raise
        say(f"{self.key}: {snapshot}")
        self.put(state_of(snapshot), snapshot, detail(snapshot), records(snapshot))

    def _put_records(self, records: Callable[[Snapshot], Change]) -> None:
        """Publish records with the last result: tasks learn of a person's pause or limit by a record alone.

        What the state and its detail are now may need the brokers that don't answer.
        """
        if changes := records(self._snapshot or Snapshot((), 0, 0.0)):
            self.put(self._state, detail=self._detail, records=changes)

    def _tell_wait(self) -> None:
        """Leave a result only if there is no executor, so that the page says so."""
        if missing_executor():
            self.put("running")

    def _journal(self, state: ControlState) -> Journal:
        if state.journal is None:
            raise no_journal(self.arguments.application)
        return state.journal

    def _before(self) -> Worked:
        """Return what earlier tries have done, by the results that were there when this try began."""
        if self.name not in COPYING:
            return Worked()
        if self._results is None:
            # The job has failed before it has read anything.
            self._results = self.control.read().results
        known = self._results.get(self.key)
        return known.worked if known is not None else Worked()

    def _result(self, state: str, **fields: Any) -> JobResult:
        run, attempt = self.arguments.run, self.arguments.attempt
        return JobResult(job=self.key, run=run, attempt=attempt, state=state, **fields)


@contextmanager
def _outages_logged() -> Iterator[None]:
    try:
        yield
    except Outage as outage:
        log.warning("no report: %s", outage)


def say(line: str) -> None:
    """Print a line at once, for readers who follow the log."""
    print(line, flush=True)
