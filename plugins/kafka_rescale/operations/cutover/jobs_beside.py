"""The jobs beside a cutover: at work, failed or silent, as their records in the control topic tell.

Within the pause a driver gives a sign every half second (``Job.sign``) from its own process. A driver that hangs
is therefore as silent as a driver that was killed. If only its Spark tasks have died, it writes ``failed``.
"""

from __future__ import annotations

import math
import time
from types import TracebackType

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.errors import ClusterOutage, Outage
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.expansion.rescale import Rescale

SILENT_SECONDS = 4.0
"""The time of eight signs. Only this process's clock measures it: clocks of two machines are never compared."""
DOUBT_SECONDS = 1.0
"""Then a new client listens, for the time of two signs: this process's own client may stand still."""
LISTEN_SECONDS = 0.05
SLOW_SECONDS = 1.0
SLOW_PROBE_SECONDS = 2.0
"""If brokers take longer to answer, one of them may be frozen. A busy machine alone takes less."""
AFTER_OUTAGE_SECONDS = 30.0
"""A job's request to a frozen or killed broker ends after 20 s; then the job repeats it."""
REASON_SHOWN = 300
OVER = frozenset({"failed", "stopped"})


class JobsBeside:
    """Follows the results of jobs. It reads only what is new in the control topic.

    :param plan: plan of the expansion that the jobs work for.
    """

    def __init__(self, rescale: Rescale, plan: Plan) -> None:
        self._rescale, self._plan = rescale, plan
        self._follower = rescale.control.follow()
        self._heard: dict[str, tuple[int, float]] = {}
        self._unread: dict[str, int] = {}
        self._written = 0
        self._looked_at = self._probed_at = self._unwell_at = self._renewed_at = -math.inf

    def result(self, job: str) -> JobResult | None:
        """Return what a job has left so far."""
        return self._look(job)[1]

    def signs(self, job: str) -> int:
        """Return how many signs of life of a job have been seen. Only a growing number says that it lives."""
        return self._look(job)[0]

    def note_outage(self) -> None:
        """Note that the cluster did not answer: for a while, a job's silence says nothing about the job."""
        self._unwell_at = time.monotonic()

    def assert_at_work(self, job: str, remedy: str) -> None:
        """Check by a job's records that it goes on.

        :param remedy: what a person has to do if it doesn't.
        :raises Outage: the job has failed or stopped, or is silent although the brokers answer.
        """
        _, result = self._look(job)
        if result is not None and result.state in OVER:
            # Spark's own failures are a page long; the task's log has all of it.
            reason = " ".join(result.detail.split())[:REASON_SHOWN] or "no reason given"
            raise self._gone(job, f"{result.state}: {reason}", remedy)
        if not (self._is_silent(job) and self._is_cluster_well()):
            return
        # Asking the cluster has taken time, in which signs may have arrived.
        self._look(job)
        if not self._is_silent(job):
            return
        if self._unwell_at > self._renewed_at:
            self._read_anew()
            return
        if self._is_heard_anew(job) or self._is_hidden():
            return
        last = f"its last was {result.state!r}" if result else "there was none before"
        raise self._gone(job, f"no sign of life for {SILENT_SECONDS:.0f} s ({last})", remedy)

    def _is_silent(self, job: str) -> bool:
        return time.monotonic() - self._heard[job][1] > SILENT_SECONDS

    def _look(self, job: str) -> tuple[int, JobResult | None]:
        count, result = self._follower.heard(job)
        count += self._unread.get(job, 0)
        now = time.monotonic()
        if now - self._looked_at > SLOW_SECONDS:
            # This process did something else, or stood still itself: it may not have read the job's signs yet.
            self._heard.clear()
        self._looked_at = now
        if self._heard.get(job, (-1, 0.0))[0] != count:
            self._heard[job] = (count, now)
        return count, result

    def _read_anew(self) -> None:
        """Follow with a new client, and begin to listen again.

        After an outage it may be this process's own client that stands still. Once, when a frozen broker was back,
        the client did not read for 14 s what a job had written.
        """
        self._renewed_at = time.monotonic()
        fresh = self._rescale.control.follow()
        for job in self._heard:
            before, newest = self._follower.heard(job)
            now, found = fresh.heard(job)
            # Compaction may have removed signs. The number must not fall, and must rise if the result is new.
            self._unread[job] = self._unread.get(job, 0) + before - now + (found != newest)
        self._follower.close()
        self._follower = fresh
        self._heard.clear()

    def _is_heard_anew(self, job: str) -> bool:
        """Whether a new client hears of the job at once or within ``DOUBT_SECONDS``."""
        before, _ = self._look(job)
        self._read_anew()
        until = time.monotonic() + DOUBT_SECONDS
        while self._look(job)[0] == before and time.monotonic() < until:
            time.sleep(LISTEN_SECONDS)
        return self._look(job)[0] != before

    def _is_hidden(self) -> bool:
        """Whether an open transaction may hide from every client what the job writes.

        All applications share one partition. If a writer of any of them is killed within a transaction, nobody
        sees what stands behind it before the transaction ends, some 20 s later. Until then, this begins to listen
        again.
        """
        try:
            seen = self._rescale.admin.end_offsets([CONTROL_TOPIC], read_committed=True)
        except ClusterOutage:
            self.note_outage()
            return True
        # The end of all records was asked for before a new client has listened. What is open is open since then.
        is_hidden = seen[CONTROL_TOPIC][0] < self._written
        if is_hidden:
            self._heard.clear()
        return is_hidden

    def _is_cluster_well(self) -> bool:
        """Whether every broker is up, and all leaders of this expansion's partitions have answered for a while.

        A job seems silent while the broker that it writes to, or its transaction coordinator, is away.
        """
        began = time.monotonic()
        if began - self._probed_at > SLOW_SECONDS:
            topics = {t for m in self._plan.moves for t in (m.source, m.target)} | {CONTROL_TOPIC}
            admin = self._rescale.admin
            try:
                self._written = admin.end_offsets(sorted(topics), read_committed=False)[CONTROL_TOPIC][0]
                # Leaders move at once, but the job may still wait for a coordinator on the broker that is down.
                is_whole = admin.is_whole()
            except ClusterOutage:
                is_whole = False
            if not is_whole:
                self.note_outage()
            self._probed_at = time.monotonic()
            if self._probed_at - began > SLOW_PROBE_SECONDS:
                self.note_outage()
            # Asking took time in which no sign could be read: it must not count as silence.
            self._looked_at = self._probed_at
        return time.monotonic() - self._unwell_at > AFTER_OUTAGE_SECONDS

    def _gone(self, job: str, found: str, remedy: str) -> Outage:
        return Outage(
            f"{job} job of {self._plan.application}", found=found, expected="a job that goes on", remedy=remedy
        )

    def close(self) -> None:
        """Stop following."""
        self._follower.close()

    def __enter__(self) -> JobsBeside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
