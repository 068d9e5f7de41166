"""The copy loop: reads source partitions in offset order and writes them re-partitioned, exactly once.

1. Fence: one transactional producer per source partition, ``init_transactions``.
2. Position: the copy group's committed offset, else the log start; refused if the source has been truncated, or if
   the copy paused for longer than tombstones live.
3. Steps: read what there is, route it, write it; commit records and position in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan import Plan
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_batches import Batches
from kafka_rescale.kafka.copy_commits import Commits
from kafka_rescale.kafka.copy_freshness import Freshness
from kafka_rescale.kafka.copy_marks import EMPTIED, Mark, Position, copy_consumer, read_positions
from kafka_rescale.kafka.copy_settings import BULK, CopySettings, rules_of
from kafka_rescale.kafka.copy_silence import Silence
from kafka_rescale.kafka.copy_start import checked_offset, log_range, start_of, truncated
from kafka_rescale.kafka.copy_units import CopyUnit
from kafka_rescale.kafka.copy_writer import UnitWriter
from kafka_rescale.kafka.error_classes import is_outage
from kafka_rescale.kafka.failures import LOG_TRUNCATION, to_error
from kafka_rescale.kafka.seeding import Seeding, seed_with
from kafka_rescale.kafka.waiting import now_ms

STEP_SECONDS = 0.1
COMMIT_THREADS = 8


class CopyWorker:
    """Copies some units round-robin in one process.

    :param units: any number; each is owned by one worker at a time, the newest.
    :param clock: wall clock in ms.
    :param group: keeps the positions; by default the plan's copy group.
    :raises RescaleError: see ``UnitWriter``; every older attempt at these units has been fenced on return.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        plan: Plan,
        units: Sequence[CopyUnit],
        settings: CopySettings = BULK,
        clock: Callable[[], int] = now_ms,
        group: str | None = None,
    ) -> None:
        self._settings, self._clock = settings, clock
        rules = rules_of(ClusterAdmin(connection), [unit.move for unit in units])
        self._rules = rules.sources
        self._freshness = Freshness(self._rules, clock)
        self._consumer = copy_consumer(connection, group or plan.copy_group, **settings.consumer())
        # Commits wait for the brokers: those of several units wait together.
        self._pool = ThreadPoolExecutor(max_workers=max(1, min(COMMIT_THREADS, len(units))))
        opened = self._pool.map(
            lambda unit: UnitWriter(connection, unit, plan.green, rules.batch_bytes[unit.move.target]), units
        )
        self.writers: dict[TopicPartition, UnitWriter] = {w.unit.source: w for w in opened}
        self._limits: Mapping[TopicPartition, int] = {}
        self.commits = Commits(self._consumer, settings, self._pool)
        self._silence = Silence(self.writers, settings.stall_seconds)
        self._looked = time.monotonic()

    def begin(
        self, starts: Mapping[TopicPartition, int] | None = None, seeding: Seeding | None = None
    ) -> dict[TopicPartition, int]:
        """Find the positions and start to read; return how many rows of a snapshot each seeded unit began with.

        :param starts: where records in flight begin: of units whose target has just been emptied for this attempt,
            or that are moved in place and have no position yet.
        :param seeding: snapshots that copies which have not begun may begin with.
        :raises UnsafeState: a source has been truncated or recreated.
        :raises StaleCopy: tombstones may have been missed.
        """
        committed = read_positions(self._consumer, self.writers)
        seeded: dict[TopicPartition, int] = {}
        for source, writer in self.writers.items():
            found, log = committed.get(source), log_range(self._consumer, source)
            if seeding is not None and seeding.fits(source, found, log):
                seeded[source] = seed_with(writer, self._consumer, seeding, self._settings)
                continue
            if found is None and writer.unit.move.is_in_place and source in (starts or {}):
                found = Position((starts or {})[source], Mark())
            elif found is not None and found.mark.state == EMPTIED:
                found = Position((starts or {})[source], found.mark)
            rules = self._rules[source[0]]
            start = start_of(writer.unit, found, log, rules, self._clock())
            writer.begin(start, committed=start == committed.get(source))
        self._read_from_positions()
        return seeded

    def announce(self, session: str) -> None:
        """Leave word, where the positions are, that this worker is up and follows its units.

        :param session: a name that no other process uses.
        """
        found = read_positions(self._consumer, self.writers)

        def leave(source: TopicPartition) -> None:
            writer = self.writers[source]
            position = found.get(source) or Position(writer.position, writer.mark)
            writer.commit_at(self._consumer, replace(position, mark=replace(position.mark, session=session)))

        list(self._pool.map(leave, self.writers))

    def step(self, seconds: float = STEP_SECONDS) -> int:
        """Copy what can be read now; return how many records that were.

        :param seconds: how long to wait for more records, at most.
        :raises Fenced: a newer attempt has taken over; the whole attempt must stop.
        :raises Outage: nothing was heard of a partition for ``stall_seconds``.
        """
        began = time.monotonic()
        messages = self._consumer.consume(self._settings.poll_records, seconds)
        count = self._take(messages, time.monotonic() - began)
        self._look()
        self._silence.check()
        self._freshness.check(self.writers)
        self._commit(self.commits.due(self.writers.values()))
        return count

    def run_to(self, ends: Mapping[TopicPartition, int], asked_ms: int, *, exactly: bool = False) -> None:
        """Copy until every unit has reached its end, and commit.

        :param ends: exclusive; what lies behind may be copied as well.
        :param asked_ms: wall clock before the ends were captured.
        :param exactly: copy nothing behind the ends; the worker can't go on to others afterwards.
        """
        self._limits = ends if exactly else {}
        self._freshness.aim(ends, asked_ms)
        self._silence.heard()
        while True:
            while any(self.writers[source].position < end for source, end in ends.items()):
                self.step()
            self._freshness.check(self.writers)
            self._commit([w for w in self.writers.values() if w.is_dirty or w.unrecorded_ms])
            if not any(self.writers[source].position < end for source, end in ends.items()):
                return

    def close(self) -> None:
        """Give up what is not committed and close all clients."""
        list(self._pool.map(UnitWriter.abort, self.writers.values()))
        self._pool.shutdown()
        self._consumer.close()

    def _take(self, messages: Iterable[Message], listened: float) -> int:
        batches = Batches.of(messages, self._limits)
        self._silence.listened(listened, batches.heard)
        wrote = self.commits.wrote
        lost = {s for s, batch in batches.records.items() if batch and not wrote(self.writers[s], batch)}
        for source in batches.ends.keys() - lost:
            self.writers[source].reached(batches.ends[source])
        if lost:
            self._read_from_positions()
        # Last: who reads on elsewhere reads all units on from where they are, with what this poll has brought.
        for source, error in batches.errors.items():
            self._read_error(source, error)
        return sum(map(len, batches.records.values()))

    def _commit(self, writers: Sequence[UnitWriter]) -> None:
        if not self.commits.commit(writers):
            self._read_from_positions()

    def _read_from_positions(self) -> None:
        self._consumer.assign([KafkaPartition(*source, w.position) for source, w in self.writers.items()])

    def _read_error(self, source: TopicPartition, error: KafkaError) -> None:
        if LOG_TRUNCATION in error.str():
            # Nobody is asked for the end: it may be past the position again, and the log is another one below.
            raise truncated(self.writers[source].unit, self.writers[source].position)
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            writer = self.writers[source]
            log = log_range(self._consumer, source)
            writer.reached(checked_offset(writer.unit, writer.position, log, self._rules[source[0]]))
            self._read_from_positions()
        elif not is_outage(error):
            raise to_error(error, f"topic {source[0]} partition {source[1]}")

    def _look(self) -> None:
        """Ask for the ends now and then: a unit that reaches them is known to be as fresh as the question.

        One that has still to reach an end is not asked about: an answer is no sign that its records come.
        """
        if time.monotonic() - self._looked < self._settings.look_seconds:
            return
        self._looked = time.monotonic()
        asked_ms = self._clock()
        for source in self._freshness.without_goal(self.writers):
            try:
                self._freshness.aim({source: log_range(self._consumer, source).end}, asked_ms)
            except Outage:
                return  # a broker restarts; `stall_seconds` bounds how long that may take
            self._silence.heard([source])
