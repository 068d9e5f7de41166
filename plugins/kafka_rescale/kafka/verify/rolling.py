"""Comparing what blue writes, stretch after stretch, in a thread beside the copy.

The copy goes on while a stretch is compared, and may be faster, until it has caught up. So fences are read
meanwhile as well: they divide what was copied into stretches of bounded length.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Mapping
from threading import Event, Lock, Thread

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import again_after_outage
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.fences import green_now, last_fences, read_fences
from kafka_rescale.kafka.verify.delta import compare_stretch, compared_topics
from kafka_rescale.kafka.verify.stretch import Abandoned, Stretch

log = logging.getLogger(__name__)

KEPT_SECONDS = 10.0
"""Time between two results that are taken. Until the control topic is compacted, its readers read all of them."""
PAUSE_SECONDS = 5.0
"""Rest between two stretches, until blue is about to stop. What was written since is compared within the pause."""

LOOK_SECONDS = 15.0
"""Time between two looks at how far the copy is, while a stretch is compared."""
AHEAD_RECORDS = 20_000_000
"""What the copy has written, counted by offsets of blue, between two fences that are read ahead."""


class RollingComparison:
    """Continues the rolling proof of an attempt.

    :param control: the job's own: what it reads here again and again, the job has not to read within the pause.
    :param journal: journal of the attempt; its plan has changelogs.
    :param by: the try of the job, by ``compared_by``.
    """

    def __init__(self, control: ControlTopic, journal: Journal, by: str = "") -> None:
        self._control, self._connection, self._by = control, control.connection, by
        self._journal, self._plan = journal, journal.plan
        self._over, self._hurried, self._lock = Event(), Event(), Lock()
        self._latest: RollingProof | None = None
        self._taken: RollingProof | None = None
        self._taken_at = -math.inf
        self._topics: dict[str, TopicDescription] = {}
        self._ahead: deque[Fences] = deque()

    def start(self) -> None:
        """Begin to compare. The thread ends with ``finish``, ``end``, or the process."""
        Thread(target=self._go_on, name="rolling proof", daemon=True).start()

    def hurry(self) -> None:
        """Compare without a rest from now on: blue is about to stop, and what is left lengthens the pause."""
        self._hurried.set()

    @property
    def has_begun(self) -> bool:
        """Whether there is a first fence, behind which everything will be compared."""
        return self._latest is not None

    def take(self) -> RollingProof | None:
        """Return the newest result; None if it was returned before, or if another was returned a moment ago."""
        with self._lock:
            if self._latest is self._taken or time.monotonic() - self._taken_at < KEPT_SECONDS:
                return None
            self._taken, self._taken_at = self._latest, time.monotonic()
            return self._latest

    def end(self) -> None:
        """Let the thread end. It keeps nothing any more."""
        self._over.set()
        self._hurried.set()

    def finish(self, ends: PartitionOffsets) -> RollingProof:
        """Compare everything up to the ends of a stopped blue. The copy has reached them.

        :param ends: ends that were captured when blue was proven gone.
        :raises ClusterOutage: the brokers don't answer.
        """
        self.end()
        return again_after_outage(lambda: self._last(ends))

    def _last(self, ends: PartitionOffsets) -> RollingProof:
        began = time.monotonic()
        # Asked for some seconds ago. This is within the pause, and many partitions take long.
        topics = self._topics or compared_topics(self._connection, self._plan)
        known = self._latest
        asked = known.fences if known else read_fences(self._connection, self._plan)
        now = last_fences(self._connection, self._plan, ends, asked)
        before = self._before(now, known)
        stretch = Stretch(before.fences, now, is_last=True)
        stores = compare_stretch(self._connection, self._plan, stretch, topics)
        return before.extended(now, stores, time.monotonic() - began, is_complete=True, by=self._by)

    def _go_on(self) -> None:
        while not self._over.is_set():
            try:
                self._next()
            except Abandoned:
                return
            except Outage as outage:
                log.warning("what was written since is not compared yet; trying again: %s", outage)
            except RescaleError as error:
                log.error("what was written since can't be compared; trying again: %s", error)
            except Exception:
                # Such as a client or a thread that the system does not give. If this thread ended, the job would
                # say for days that it is ready, and no cutover would find its comparison near.
                log.exception("what was written since can't be compared; trying again")
            self._hurried.wait(PAUSE_SECONDS)

    def _next(self) -> None:
        began, is_ahead = time.monotonic(), self._has_next()
        now = self._ahead[0] if is_ahead else read_fences(self._connection, self._plan)
        before = self._before(now, self._latest)
        if self._latest is None:
            self._keep(before)
        stretch = Stretch(before.fences, now, over=self._over)
        self._topics = topics = compared_topics(self._connection, self._plan)
        stores = self._compared(stretch, topics)
        self._keep(before.extended(now, stores, time.monotonic() - began, by=self._by))
        if is_ahead:
            self._ahead.popleft()

    def _has_next(self) -> bool:
        """Return whether fences were read ahead. If green was begun anew since, they don't count any more."""
        if not self._ahead:
            return False
        if self._ahead[0].lost(*green_now(ClusterAdmin(self._connection), self._plan)):
            self._ahead.clear()
        return bool(self._ahead)

    def _compared(self, stretch: Stretch, topics: Mapping[str, TopicDescription]) -> tuple[StoreReport, ...]:
        """Compare a stretch. Meanwhile, another thread reads the fences of the stretches behind it.

        Nothing waits for that thread: a look may take minutes, and blue may stop meanwhile.
        """
        is_compared = Event()
        Thread(target=self._look_ahead, args=(stretch.now, is_compared), name="fences ahead", daemon=True).start()
        try:
            return compare_stretch(self._connection, self._plan, stretch, topics)
        finally:
            with self._lock:
                is_compared.set()

    def _look_ahead(self, now: Fences, is_compared: Event) -> None:
        while not is_compared.wait(LOOK_SECONDS):
            # Not when blue is about to stop: the comparison is near then, and brokers have other things to do.
            if self._hurried.is_set():
                return
            try:
                found = read_fences(self._connection, self._plan)
            except Exception as error:
                log.warning("where the copy is by now can't be seen; looking again: %s", error)
                continue
            with self._lock:
                last = self._ahead[-1] if self._ahead else now
                # What is seen later belongs to no stretch any more: the next one may have begun behind it.
                if not is_compared.is_set() and _copied(last, found) >= AHEAD_RECORDS:
                    self._ahead.append(found)

    def _keep(self, found: RollingProof) -> None:
        with self._lock:
            if not self._over.is_set():
                self._latest = found

    def _before(self, now: Fences, known: RollingProof | None) -> RollingProof:
        """Return the rolling proof to continue.

        That is this process's own last result, or the result of the job before it. If neither continues the proof,
        a rolling proof begins at the fence of the proof. If green has lost what was compared, or if there is
        nothing to continue, everything begins at this fence.
        """
        state = self._control.read()
        found = known or RollingProof.of_record(state.rolling_proof, self._journal)
        proof = Proof.of_record(state.proof, self._journal)
        if found is not None and found.fences.lost(now.green_topics, now.green_begins, now.green_restarts):
            log.warning("green's topics were begun anew: what was compared before doesn't count any more")
            found = None
        if proof is None or proof.fences.lost(now.green_topics, now.green_begins, now.green_restarts):
            return found or RollingProof.begun(self._journal, now)
        if found is None or not found.continues(proof.fences.fence):
            return RollingProof.begun(self._journal, proof.fences)
        return found


def _copied(last: Fences, found: Fences) -> int:
    return sum(offset - last.fence[topic][p] for topic, of in found.fence.items() for p, offset in of.items())
