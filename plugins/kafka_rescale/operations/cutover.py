"""The cutover: one resumable function over the journal's phases.

1. ``WARMING``: wait until the running ``catch_up`` job (and a bridge, if there is one) says ready; protect green's
   records from compaction.
2. ``QUIESCING``: hold the producers of paused inputs, drain, stop blue, prove it gone, capture what it left.
3. ``QUIESCED``: ``catch_up`` copies the last delta and the in-flight records; wait for it.
4. ``CAUGHT_UP`` → ``PROMOTED``: the point of no return, one transaction.
5. ``PROMOTED``: grow the inputs, give green its offsets, start it, release the producers. A bridge goes on by
   itself from here.

Inputs are grown only after promotion: a grown input can't shrink, and blue would die on it, so a failure between
growth and promotion could not be rolled back.
"""

from __future__ import annotations

import logging

from kafka_rescale.core.application import Application
from kafka_rescale.core.control_records import Concern, Generations, JobResult
from kafka_rescale.core.errors import Outage, RescaleError, UnsafeState
from kafka_rescale.core.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.plan import Plan
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.transactions import wait_until_complete
from kafka_rescale.kafka.waiting import now_ms, wait_until
from kafka_rescale.operations import producers, quiesce
from kafka_rescale.operations.compaction import hold_compaction
from kafka_rescale.operations.gate import assert_nothing_committed
from kafka_rescale.operations.rescale import Rescale, blue, green
from kafka_rescale.operations.rollback import roll_back
from kafka_rescale.operations.start_green import start_green
from kafka_rescale.operations.timings import Timings

log = logging.getLogger(__name__)

READY_SECONDS = 600.0


def run_cutover(application: Application, connection: KafkaConnection, *, owner: str) -> dict[str, float]:
    """Cut over from blue to green, or go on with a cutover that was interrupted.

    A failure before promotion rolls back at once, so that blue is down no longer than needed.

    :param owner: the run that holds the lease.
    :returns: seconds per part of the downtime.
    :raises RescaleError: what went wrong; blue runs again unless the promotion had happened.
    """
    cutover = Cutover(Rescale.open(application, connection, owner))
    try:
        cutover.until_promoted()
    except RescaleError as error:
        log.error("the cutover failed before promotion: %s", error)
        roll_back(application, connection, owner=owner, reason=str(error))
        raise
    return cutover.after_promotion()


class Cutover:
    """The steps, each of which may be killed at any instruction and called again."""

    def __init__(self, rescale: Rescale) -> None:
        self._rescale = rescale
        self._timings = Timings({})

    def until_promoted(self) -> Journal:
        """Run everything up to and including the promotion."""
        journal = self._rescale.journal()
        if journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
            raise UnsafeState(
                f"expansion of {journal.plan.application}",
                found=journal.phase.value,
                expected="an attempt in progress",
                remedy="Trigger the expansion again: it continues with the copies that exist.",
            )
        self._timings = Timings(journal.timings)
        if journal.phase is Phase.WARMING:
            journal = self._prepare(journal)
        if journal.phase is Phase.QUIESCING:
            journal = self._quiesce(journal)
        if journal.phase is Phase.QUIESCED:
            journal = self._await_delta(journal)
        if journal.phase is Phase.CAUGHT_UP:
            journal = self._promote(journal)
        return journal

    def after_promotion(self) -> dict[str, float]:
        """Run everything after the promotion; only forward, so every step is retried until it succeeds."""
        journal = self._rescale.journal()
        if journal.phase is Phase.PROMOTED:
            journal = start_green(self._rescale, journal, Timings({**journal.timings, **self._timings}))
        return dict(journal.timings)

    def _prepare(self, journal: Journal) -> Journal:
        plan = journal.plan
        self._assert_green_is_cold(plan)
        quiesce.assert_unused(self._rescale, plan)
        self._await_ready("catch_up", "say that it is near the ends", "Look at the log of the catch_up task.")
        if plan.bridges:
            self._await_ready(
                "bridge", "be up", f"Unpause bridge_{plan.application}, and look at the log of its bridge task."
            )
        # Verify compares green below the offsets captured at promotion; a record there must not be compacted
        # away by a newer one that green writes afterwards. Undone when verify has passed.
        hold_compaction(self._rescale, journal)
        return self._rescale.advance(Phase.QUIESCING, pause_started_ms=now_ms(), timings={})

    def _quiesce(self, journal: Journal) -> Journal:
        rescale, plan = self._rescale, journal.plan
        with self._timings.part("drain"):
            producers.hold(rescale)
            quiesce.drain(rescale, plan, self._seconds_left(journal))
        with self._timings.part("quiesce"):
            rescale.advance(Phase.QUIESCING, stop_asked=True)
            rescale.lifecycle.stop(blue(plan))
        with self._timings.part("prove"):
            captured = quiesce.prove_gone(rescale, plan, self._seconds_left(journal))
        return rescale.advance(Phase.QUIESCED, captured=captured, timings=dict(self._timings))

    def _await_delta(self, journal: Journal) -> Journal:
        with self._timings.part("delta"):
            wait_until(
                lambda: self._is_copied(journal),
                seconds=self._seconds_left(journal),
                what="the catch_up job to copy the last delta",
                remedy="Look at the log of the catch_up task; blue has been started again.",
                longest_pause=0.05,
            )
        return self._rescale.advance(Phase.CAUGHT_UP, timings=dict(self._timings))

    def _promote(self, journal: Journal) -> Journal:
        plan, admin = journal.plan, self._rescale.admin
        with self._timings.part("promote"):
            targets = [m.target for m in plan.moves]
            # A commit's markers may arrive after it has been answered: until then the end is too low.
            wait_until_complete(admin, targets, seconds=self._seconds_left(journal), longest_pause=0.02)
            green_ends = admin.end_offsets(targets)
            inputs = [i.topic for i in plan.inputs]
            quiesce.assert_held(self._rescale, journal)
            quiesce.assert_unused(self._rescale, plan)
            return self._rescale.advance(
                Phase.PROMOTED,
                records={Concern.GENERATIONS: _promoted(plan)},
                green_ends=green_ends,
                green_start=self._green_start(journal),
                input_ends=admin.end_offsets(inputs),
                timings=dict(self._timings),
            )

    def _green_start(self, journal: Journal) -> PartitionOffsets:
        """Blue's stop points, 0 for new partitions and successors, and the log start of repartition topics."""
        assert journal.captured is not None
        stopped = journal.captured.committed
        start = {
            i.green_topic: {p: 0 if i.successor else stopped[i.topic].get(p, 0) for p in range(i.target)}
            for i in journal.plan.inputs
        }
        repartitions = [m.target for m in journal.plan.repartitions]
        return {**start, **self._rescale.admin.begin_offsets(repartitions)}

    def _assert_green_is_cold(self, plan: Plan) -> None:
        running = self._rescale.lifecycle.is_running(green(plan))
        if running or self._rescale.admin.describe_group(plan.green).is_live:
            raise UnsafeState(
                f"application {plan.green}",
                found="a running instance",
                expected="none before the promotion, behind the warm-up gate or not",
                remedy=f"Stop it; it would process what {plan.blue} still owns, or never process anything.",
            )
        assert_nothing_committed(self._rescale, plan)

    def _result(self, job: str) -> JobResult | None:
        return self._rescale.control.read().results.get(job)

    def _await_ready(self, job: str, what: str, remedy: str) -> None:
        first = self._result(job)
        first_beat = 0 if first is None else first.as_of_ms

        def beats() -> bool:
            # A heartbeat must have moved: a record left by a job that has died says `ready` for ever.
            result = self._result(job)
            return result is not None and result.state == "ready" and result.as_of_ms not in {0, first_beat}

        wait_until(beats, seconds=READY_SECONDS, what=f"the {job} job to {what}", remedy=remedy)

    def _is_copied(self, journal: Journal) -> bool:
        result = self._result("catch_up")
        return result is not None and (result.state, result.detail) == ("done", f"attempt {journal.attempt}")

    def _seconds_left(self, journal: Journal) -> float:
        """Return how long the pause may still last.

        :raises Outage: it has lasted too long, for example because a killed task was noticed late.
        """
        limit = self._rescale.application.max_pause_seconds
        left = limit - (now_ms() - journal.pause_started_ms) / 1000
        if left <= 0:
            raise Outage(
                f"pause of {journal.plan.blue}",
                found=f"more than {limit} s",
                expected=f"promotion within max_pause_seconds ({limit})",
                remedy="Blue is started again; look at the log for what took so long, then trigger again.",
            )
        return left


def _promoted(plan: Plan) -> Generations:
    return Generations(
        running=plan.green,
        generation=plan.generation,
        partitions=plan.partitions,
        previous=plan.blue,
        inputs={i.declared: i.green_topic for i in plan.inputs if i.green_topic != i.declared},
    )
