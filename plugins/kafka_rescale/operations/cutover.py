"""The cutover: one resumable function over the journal's phases.

1. ``WARMING``: wait until the running ``catch_up`` job (and a bridge, if there is one) says ready, in place the
   ``move`` job; ask for the growth that is to come; protect green's records from compaction.
2. ``QUIESCING``: hold the producers of paused inputs, drain, stop blue, prove it gone, capture what it left.
3. ``QUIESCED``: ``catch_up`` copies the last delta and the in-flight records; wait for it. In place, what the
   rehearsal has not seen is looked at.
4. ``CAUGHT_UP`` → ``PROMOTED``: the point of no return, one transaction.
5. ``PROMOTED``: in place its own topics grow, and ``move`` moves what moves. Grow the inputs, give green its
   offsets, start it, release the producers, see that blue has not come back. A bridge goes on by itself from here.

Inputs are grown only after promotion: a grown input can't shrink, and blue would die on it, so a failure between
growth and promotion could not be rolled back.
"""

from __future__ import annotations

import logging

from kafka_rescale.core.application import Application, Mode
from kafka_rescale.core.control_records import Concern
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.generations import promoted_generations
from kafka_rescale.core.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.waiting import now_ms, wait_until
from kafka_rescale.operations import producers, quiesce
from kafka_rescale.operations.compaction import hold_compaction
from kafka_rescale.operations.copies import await_copies, await_mover, is_copied, last_sign_of_life, results_of
from kafka_rescale.operations.growing import assert_may_grow, assert_movable
from kafka_rescale.operations.in_place import grown
from kafka_rescale.operations.input_positions import await_positions
from kafka_rescale.operations.promotion import assert_promotable, green_offsets
from kafka_rescale.operations.rescale import Rescale, blue
from kafka_rescale.operations.rollback import roll_back
from kafka_rescale.operations.start_green import start_green
from kafka_rescale.operations.timings import Timings

log = logging.getLogger(__name__)


def run_cutover(application: Application, connection: KafkaConnection, *, owner: str) -> dict[str, float]:
    """Cut over from blue to green, or in place to more partitions, or go on with a cutover that was interrupted.

    A failure before promotion rolls back at once, so that blue is down no longer than needed.

    :param owner: the run that holds the lease.
    :returns: seconds per part of the downtime.
    :raises UnsafeState: the expansion in progress was begun in another mode than the declared one.
    :raises Exception: what went wrong; blue runs again unless the promotion had happened.
    """
    cutover = Cutover(Rescale.open(application, connection, owner))
    cutover.assert_mode()
    try:
        cutover.until_promoted()
    except Exception as error:
        # Whatever it is: blue is down, and nobody else would start it before the last try has failed.
        log.error("the cutover failed before promotion: %s", error)
        done = roll_back(application, connection, owner=owner, reason=str(error))
        if done.was_done_before or not done.is_done:
            cutover.let_go()
        raise
    return cutover.after_promotion()


class Cutover:
    """The steps, each of which may be killed at any instruction and called again."""

    def __init__(self, rescale: Rescale) -> None:
        self._rescale = rescale
        self._timings = Timings({})
        self._has_held = self._has_stopped = False
        self._heard: int | None = None

    def assert_mode(self) -> None:
        """Refuse an expansion that was begun in another mode than the declared one."""
        plan = self._rescale.journal().plan
        if plan.is_in_place != (self._rescale.application.mode is Mode.IN_PLACE):
            raise UnsafeState(
                f"expansion of {plan.application}",
                found=f"one that was begun with mode {'in_place' if plan.is_in_place else 'blue_green'}",
                expected="the other one, which the application file declares by now",
                remedy="Declare the mode that it was begun with, and trigger again; or roll it back.",
            )

    def until_promoted(self) -> Journal:
        """Run everything up to and including the promotion."""
        journal = self._rescale.journal()
        if journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
            raise UnsafeState(
                f"expansion of {journal.plan.application}",
                found=journal.told,
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

    def let_go(self) -> None:
        """Undo what this process has done beside another one that has rolled the attempt back, or is about to.

        That one has started what was stopped by then; what was stopped a moment later is still down. It may have
        taken the lease for that, and given it back; what was begun since and needs blue down is let alone.
        """
        journal = self._rescale.control.read().journal
        if journal is None or journal.is_promoted or journal.phase in BLUE_STOPPED:
            return
        try:
            if self._has_held:
                producers.release(self._rescale)
        finally:
            if self._has_stopped:
                self._rescale.lifecycle.start(blue(journal.plan))

    def after_promotion(self) -> dict[str, float]:
        """Run everything after the promotion; only forward, so every step is retried until it succeeds."""
        journal = self._rescale.journal()
        if journal.phase is Phase.PROMOTED:
            timings = Timings({**journal.timings, **self._timings})
            if journal.plan.is_in_place:
                journal = grown(self._rescale, journal, timings)
            journal = start_green(self._rescale, journal, timings)
        return dict(journal.timings)

    def _prepare(self, journal: Journal) -> Journal:
        await_copies(self._rescale, journal.plan)
        await_positions(self._rescale, journal.plan)
        assert_may_grow(self._rescale.admin, journal.plan)
        # Verify compares green below the offsets captured at promotion; a record there must not be compacted
        # away by a newer one that green writes afterwards. Undone when verify has passed.
        hold_compaction(self._rescale, journal)
        blue_ran = self._rescale.lifecycle.is_running(blue(journal.plan))
        return self._rescale.advance(Phase.QUIESCING, pause_started_ms=now_ms(), timings={}, blue_ran=blue_ran)

    def _quiesce(self, journal: Journal) -> Journal:
        rescale, plan = self._rescale, journal.plan
        # In place, the user may have stopped it already; then a rollback must not start it. The group doesn't
        # tell: classic members linger after a clean close. One that lives is found by the proof below.
        stopped = plan.is_in_place and not journal.stop_asked and not journal.blue_ran
        with self._timings.part("drain"):
            self._has_held = True
            producers.hold(rescale)
            quiesce.drain(rescale, plan, 0 if stopped else self._seconds_left(journal))
        with self._timings.part("quiesce"):
            if not stopped:
                rescale.advance(Phase.QUIESCING, stop_asked=True)
                self._has_stopped = True
                rescale.lifecycle.stop(blue(plan))
        with self._timings.part("prove"):
            captured = quiesce.prove_gone(rescale, plan, self._seconds_left(journal))
        return rescale.advance(Phase.QUIESCED, captured=captured, timings=dict(self._timings))

    def _await_delta(self, journal: Journal) -> Journal:
        if journal.plan.is_in_place:
            # What moves is copied after the promotion: it needs partitions that can't be taken away again.
            self._heard = last_sign_of_life(self._rescale, "move")
            with self._timings.part("rehearse"):
                assert_movable(self._rescale, journal)
            return self._rescale.advance(Phase.CAUGHT_UP, timings=dict(self._timings))
        with self._timings.part("delta"):
            wait_until(
                lambda: is_copied(results_of(self._rescale, "catch_up").get("catch_up"), journal),
                seconds=self._seconds_left(journal),
                what="the catch_up job to copy the last delta",
                remedy="Look at the log of the catch_up task; blue has been started again.",
                longest_pause=0.05,
            )
        return self._rescale.advance(Phase.CAUGHT_UP, timings=dict(self._timings))

    def _promote(self, journal: Journal) -> Journal:
        plan = journal.plan
        with self._timings.part("promote"):
            # In place, green's ends and start are known only when everything has been moved.
            begins, known = {}, {}
            if plan.is_in_place:
                # Asked for since the stop: while the inputs were drained, it may have died.
                heard = last_sign_of_life(self._rescale, "move") if self._heard is None else self._heard
                await_mover(self._rescale, plan, heard)
            else:
                begins = self._rescale.admin.begin_offsets(m.target for m in plan.moves)
                known = green_offsets(self._rescale, journal, begins, self._seconds_left(journal))
            assert_promotable(self._rescale, journal)
            return self._rescale.advance(
                Phase.PROMOTED,
                records=lambda s: {Concern.GENERATIONS: promoted_generations(journal, s.generations, begins)},
                input_ends=self._rescale.admin.end_offsets([i.topic for i in plan.inputs]),
                timings=dict(self._timings),
                **known,
            )

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
