"""The copy loop: reads source partitions in offset order and writes them re-partitioned, exactly once.

1. Fence: one transactional producer per bucket of source partitions, ``init_transactions``.
2. Position: the copy group's committed offset, else the log start. Refuse if the source has been truncated, or if
   the copy paused for longer than tombstones live.
3. Steps: read what there is, route it, write it; commit records and their positions in one transaction.
4. Watch: if a commit does not return, or existing records don't come, replace all clients. If that does not help,
   raise an outage.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage, Outage
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import LOG_TRUNCATION, to_error
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.batches import Batches
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.clients import CopyClients
from kafka_rescale.kafka.copy.commits import Commits
from kafka_rescale.kafka.copy.freshness import Freshness
from kafka_rescale.kafka.copy.look import Look
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position, read_positions
from kafka_rescale.kafka.copy.seeding import Flow, Seeding, seed_with
from kafka_rescale.kafka.copy.settings import BULK, CopySettings, rules_of
from kafka_rescale.kafka.copy.silence import Silence
from kafka_rescale.kafka.copy.start import checked_offset, start_of, truncated
from kafka_rescale.kafka.copy.throttle import Share, Throttle, unlimited
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.watch import Watch
from kafka_rescale.kafka.copy.window import ANSWER_SECONDS, Window
from kafka_rescale.kafka.copy.writer import UnitWriter
from kafka_rescale.kafka.reading.log_range import log_range

log = logging.getLogger(__name__)

ANNOUNCED_SECONDS, TRIED_SECONDS = 3_600.0, 60.0
"""How long a worker that only waits lets pass until it announces itself again, and until it tries that again."""


class CopyWorker:
    """Copies some units round-robin in one process.

    :param units: any number; the newest worker of a unit owns its whole bucket alone.
    :param clock: wall clock in ms.
    :param group: the group that keeps the positions; by default the plan's copy group.
    :param share: bytes per second that it may write.
    :raises RescaleError: see ``UnitWriter``; if it returns, every older attempt at these units is fenced.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        plan: Plan,
        units: Sequence[CopyUnit],
        settings: CopySettings = BULK,
        clock: Callable[[], int] = now_ms,
        group: str | None = None,
        share: Share = unlimited,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._throttle, self._window, self._throttled_ms = Throttle(share), Window(settings), 0
        admin = ClusterAdmin(connection)
        rules = rules_of(admin, [unit.move for unit in units])
        self._rules = rules.sources
        self._freshness = Freshness(self._rules, clock)
        self._opened = partial(
            CopyClients, connection, plan, units, settings, group or plan.copy_group, rules.batch_bytes
        )
        self._clients, self._are_abandoned = self._opened(), False
        self._session, self._announce_at = "", time.monotonic() + ANNOUNCED_SECONDS
        self._limits: Mapping[TopicPartition, int] = {}
        self._silence = Silence(self.writers, settings.stall_seconds)
        self._watch = Watch(settings.still_seconds)
        self._ends = Look(admin, settings.look_seconds, clock)

    @property
    def writers(self) -> Mapping[TopicPartition, UnitWriter]:
        """The writers of the units; they are replaced together with the other clients."""
        return self._clients.writers

    @property
    def commits(self) -> Commits:
        """The transactions of the units."""
        return self._clients.commits

    @property
    def _consumer(self) -> Consumer:
        return self._clients.consumer

    def begin(
        self, starts: Mapping[TopicPartition, int] | None = None, seeding: Seeding | None = None
    ) -> dict[TopicPartition, int]:
        """Find the positions and start to read; return how many rows of a snapshot each seeded unit began with.

        :param starts: where records in flight begin, for units whose target has just been emptied for this
            attempt, and for units that move in place and have no position yet.
        :param seeding: snapshots; copies that have not begun yet may begin with them.
        :raises UnsafeState: a source has been truncated or recreated.
        :raises StaleCopy: tombstones may have been missed.
        """
        self._ensure_clients()
        committed = read_positions(self._consumer, self.writers)
        seeded: dict[TopicPartition, int] = {}
        renew = partial(self.announce_again, is_seeding=True)
        flow = Flow(self._throttle, self._window, self._on_way, self._hear_answers, renew)
        for source, writer in self.writers.items():
            found, log = committed.get(source), log_range(self._consumer, source)
            if seeding is not None and seeding.fits(source, found, log):
                restarted_ms = found.mark.restarted_ms if found is not None else 0
                given = writer, self._consumer, seeding, self._settings, self.commits.explain, flow
                seeded[source] = seed_with(*given, restarted_ms)
                continue
            if found is None and writer.unit.move.is_in_place and source in (starts or {}):
                found = Position((starts or {})[source], Mark())
            elif found is not None and found.mark.state == EMPTIED:
                found = Position((starts or {})[source], found.mark)
            rules = self._rules[source[0]]
            start = self._owned(start_of(writer.unit, found, log, rules, self._clock()))
            writer.begin(start, committed=start == committed.get(source))
        self._read_from_positions()
        return seeded

    def _owned(self, start: Position) -> Position:
        """Return a position without the session of another worker: that worker has just been fenced.

        The other worker follows nothing any more. But if it had nothing to write when it was fenced, it has not
        noticed. With its session in the marks, its job would go on saying that it is ready.
        """
        return replace(start, mark=replace(start.mark, session=self._session))

    def announce(self, session: str) -> None:
        """Note beside the positions that this worker is up and follows its units.

        :param session: a name that no other process uses.
        """
        self._ensure_clients()
        try:
            self._announce(session)
        except StuckCall as stuck:
            self._renew(stuck, self.writers)
            # The old clients had no records in their transactions.
            self.commits.has_rewound = False
            self._announce(session)
        self._session = session
        self._watch.moved(self.writers)

    def announce_again(self, *, is_seeding: bool = False) -> None:
        """Announce this worker once an hour, while it has nothing to write, or rests.

        By default, brokers forget after seven days what a group without members has committed, and also the
        transactional id of a producer that commits nothing. Approvals, windows and a person's pause may take
        longer. If the brokers don't answer, this is tried again a minute later.

        :param is_seeding: whether rows of a snapshot are written with these clients: no others take their place.
        :raises Fenced: a newer attempt has taken over.
        :raises StuckCall: only while a copy is being seeded.
        """
        if time.monotonic() < self._announce_at:
            return
        try:
            (self._announce if is_seeding else self.announce)(self._session)
        except Outage as outage:
            if is_seeding and isinstance(outage, StuckCall):
                raise
            log.warning("that this worker is up could not be noted again; trying again: %s", outage)
            # The next try may take new clients, although the last ones have not helped.
            self._watch.moved(self.writers)
            self._announce_at = time.monotonic() + TRIED_SECONDS

    def step(self, seconds: float | None = None) -> int:
        """Copy the records that can be read now, and return their number; rest if the share is used up.

        :param seconds: how long to wait for more records, or to rest, at most; by default ``step_seconds`` of the
            settings.
        :raises Fenced: a newer attempt has taken over; the whole attempt must stop.
        :raises ClusterOutage: the copy stands still, even with new clients.
        :raises Outage: a partition has been silent for ``stall_seconds``.
        """
        seconds = self._settings.step_seconds if seconds is None else seconds
        if (rest := self._throttle.rest_seconds()) > 0:
            # Nothing stays open meanwhile: a transaction would run into its time-out.
            if not self._are_abandoned:
                self._commit([writer for writer in self.writers.values() if writer.is_dirty])
            self.announce_again()
            time.sleep(min(rest, seconds))
            return 0
        self._ensure_clients()
        if self._window.is_full(on_way := self._on_way()):
            self._await_answers(min(seconds, ANSWER_SECONDS))
            return 0
        began, wanted = time.monotonic(), self._window.poll_records(on_way, self._throttle.most_bytes)
        messages = self._consumer.consume(wanted, seconds)
        try:
            count = self._take(messages, time.monotonic() - began)
        except StuckCall as stuck:
            self._renew(stuck, self.writers)
            return 0
        self._look()
        self._silence.check()
        self._freshness.check(self.writers)
        self._commit(self.commits.due(self.writers.values()))
        if len(messages) < wanted:
            self._watch.passed(time.monotonic() - began)
        self._look_for_stalls()
        return count

    def run_to(
        self, ends: Mapping[TopicPartition, int], asked_ms: int, *, exactly: bool = False, is_last: bool = False
    ) -> None:
        """Copy until every unit has reached its end, and commit.

        :param ends: exclusive; records behind them may be copied as well.
        :param asked_ms: wall clock before the ends were captured.
        :param exactly: copy no record behind the ends; afterwards the worker can't go on to other ends.
        :param is_last: whether the copy ends here, within the pause. Then no mark is committed only to date it,
            because thousands of marks take long.
        """
        self._ensure_clients()
        self._limits = ends if exactly else {}
        self._freshness.aim(ends, asked_ms)
        self._silence.heard()
        while True:
            while any(self.writers[source].position < end for source, end in ends.items()):
                self.step()
            self._freshness.check(self.writers)
            self._commit(
                self._left() if is_last else [w for w in self.writers.values() if w.is_dirty or w.unrecorded_ms]
            )
            if not any(self.writers[source].position < end for source, end in ends.items()):
                return

    def _left(self) -> list[UnitWriter]:
        """Return what has to be committed at the end: all new records, and of each other bucket one position.

        A worker that was fenced while it had nothing to write notices it by that position only.
        """
        found: list[UnitWriter] = []
        for bucket in self._clients.buckets:
            writers = list(bucket.writers.values())
            found += [writer for writer in writers if writer.is_dirty] or writers[:1]
        return found

    def close(self) -> None:
        """Give up uncommitted records and close all clients."""
        self._clients.close()

    def _on_way(self) -> int:
        """Return how many records the brokers have not answered, and note whether the brokers throttle."""
        throttled_ms = sum(bucket.throttled_ms for bucket in self._clients.buckets)
        if throttled_ms > self._throttled_ms:
            self._window.throttled()
        self._throttled_ms = throttled_ms
        return sum(bucket.unanswered for bucket in self._clients.buckets)

    def _await_answers(self, seconds: float) -> None:
        """Give brokers time to answer what is on its way. Then commit the transactions that are old enough."""
        self._hear_answers(seconds)
        self._commit(self.commits.due(self.writers.values()))

    def _hear_answers(self, seconds: float) -> None:
        if (waiting := next((b for b in self._clients.buckets if b.unanswered), None)) is not None:
            waiting.await_answers(seconds)

    def _announce(self, session: str) -> None:
        found = read_positions(self._consumer, self.writers)

        def left(source: TopicPartition, writer: UnitWriter) -> Position:
            position = found.get(source) or Position(writer.position, writer.mark)
            return replace(position, mark=replace(position.mark, session=session))

        def leave(bucket: Bucket) -> None:
            # A unit that has neither begun nor a position gets none: the position would be 0.
            if known := {s: left(s, w) for s, w in bucket.writers.items() if s in found or w.has_begun}:
                bucket.commit_at(self._consumer, known)

        list(self._clients.pool.map(leave, self._clients.buckets))
        self._announce_at = time.monotonic() + ANNOUNCED_SECONDS

    def _take(self, messages: Iterable[Message], listened: float) -> int:
        batches = Batches.of(messages, self._limits)
        self._silence.listened(listened, batches.heard)
        before = {source: self.writers[source].pending_bytes for source in batches.records}
        lost = self.commits.write(batches.records)
        size = sum(max(0, self.writers[s].pending_bytes - size) for s, size in before.items())
        count = sum(map(len, batches.records.values()))
        self._throttle.spent(size)
        self._window.wrote(count, size)
        for source in batches.ends.keys() - lost:
            self.writers[source].reached(batches.ends[source])
        if lost:
            self._read_from_positions()
        # Errors come last: handling one assigns all units anew, from positions that include this poll's records.
        for source, error in batches.errors.items():
            self._read_error(source, error)
        return count

    def _commit(self, writers: Sequence[UnitWriter]) -> None:
        began, size = time.monotonic(), sum(writer.pending_bytes for writer in writers)
        try:
            is_done = self.commits.commit(writers)
            self._window.committed(size, time.monotonic() - began)
        except StuckCall as stuck:
            self._window.stuck()
            self._renew(stuck, [writer.unit.source for writer in writers])
            return
        if is_done:
            self._watch.moved(writer.unit.source for writer in writers)
        else:
            self._read_from_positions()

    def _look_for_stalls(self) -> None:
        still = self._watch.still(self._clients.committed(), self._freshness.ends)
        if not still:
            return
        # An end from another process may lie behind an open transaction: then there is nothing to read.
        stalled = self._clients.with_records(still)
        self._watch.heard(set(still) - set(stalled))
        if stalled:
            stall = self._watch.stall(stalled, self._clients.committed(), self._freshness.ends)
            self._renew(stall, stalled)

    def _renew(self, reason: ClusterOutage, sources: Collection[TopicPartition]) -> None:
        """Go on from the last commits with new clients, which abort the transactions of the previous clients.

        :param reason: the error to raise if new clients have already been tried and have not helped.
        """
        if not self._watch.tell(sources):
            raise reason
        log.warning("%s The clients are replaced, and go on from the last commit.", reason)
        self._clients.await_answer(reason)
        self._clients.abandon()
        self._are_abandoned = True
        self._ensure_clients()
        self.commits.has_rewound = True

    def _ensure_clients(self) -> None:
        """Go on from the last commits with new clients, if the present ones are abandoned.

        If no new ones can be opened, the abandoned ones stay, because they know where to go on. They can't be
        used any more. So whoever survives that outage has to come here first.
        """
        if not self._are_abandoned:
            return
        self._clients.assert_newest(self._session)
        opened = self._opened()
        try:
            opened.go_on_from(self._clients)
        except Outage:
            opened.abandon()
            raise
        self._clients, self._are_abandoned = opened, False
        self._silence.heard()
        self._read_from_positions()
        log.warning("The clients are replaced: the copy goes on.")

    def _read_from_positions(self) -> None:
        begun = {source: writer for source, writer in self.writers.items() if writer.has_begun}
        self._consumer.assign([KafkaPartition(*source, w.position) for source, w in begun.items()])

    def _read_error(self, source: TopicPartition, error: KafkaError) -> None:
        if LOG_TRUNCATION in error.str():
            # Don't ask for the end: the log may reach past the position again, but it is another log below it.
            raise truncated(self.writers[source].unit, self.writers[source].position)
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            writer = self.writers[source]
            log = log_range(self._consumer, source)
            writer.reached(checked_offset(writer.unit, writer.position, log, self._rules[source[0]]))
            self._read_from_positions()
        elif not may_pass(error):
            raise to_error(error, f"topic {source[0]} partition {source[1]}")

    def _look(self) -> None:
        """Ask for the ends now and then. Once a unit has reached its end, it is as fresh as the question.

        This leaves out units that still have to reach an end: an answer would be no sign that their records come.
        """
        if (answer := self._ends.take_answer()) is not None:
            asked_ms, ends = answer
            self._freshness.aim(ends, asked_ms)
            self._silence.heard(ends)
        self._ends.ask(lambda: self._freshness.without_goal(self.writers))
