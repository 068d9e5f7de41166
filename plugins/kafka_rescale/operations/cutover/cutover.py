"""The cutover: one resumable function over the journal's phases.

1. ``WARMING``: refuse copies that are not proven. Wait until the running ``catch_up`` job (and the bridge, if
   there is one) says that it is ready; in place, check what was written since the rehearsal, and wait for the
   ``move`` job. Ask the brokers whether they would grow the topics, and whether blue reads only what the plan
   names. Protect green's records from compaction. With ``start_held``, green's processes are started, and wait at
   the door of their group.
2. ``QUIESCING``: hold the producers of paused inputs, and drain these inputs. Stop blue, prove that it is gone,
   and capture what it left.
3. ``QUIESCED``: wait until ``catch_up`` has copied the last delta and the in-flight records. In place, check the
   records that are left.
4. ``CAUGHT_UP`` → ``PROMOTED``: the point of no return, one transaction, which requires the proof.
5. ``PROMOTED``: in place, grow the application's own topics and wait until ``move`` has moved their records. Grow
   the inputs. Give green its offsets: they let in its processes if they are held. Otherwise start green. Release
   the producers, and see that blue has not come back. The bridge goes on by itself from here.

Inputs are grown only after the promotion. A grown input can't shrink, and blue would die of it. If inputs were
grown earlier, a failure before the promotion could not be rolled back.
"""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, Fenced, UnsafeState
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.verify.promotable import required_proofs
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, within
from kafka_rescale.kafka.copy.bridging import assert_none_late
from kafka_rescale.lifecycle.factory import stop_in_time
from kafka_rescale.operations.cutover import quiesce
from kafka_rescale.operations.cutover.copies import READY_SECONDS, await_signs, signs_of
from kafka_rescale.operations.cutover.growing import assert_may_grow
from kafka_rescale.operations.cutover.held import assert_waiting
from kafka_rescale.operations.cutover.input_positions import await_positions
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside
from kafka_rescale.operations.cutover.pause_limit import PauseLimit
from kafka_rescale.operations.cutover.persistence import insist, start, state_of_pause
from kafka_rescale.operations.cutover.pinned_topics import assert_as_pinned, warn_of_unpinned
from kafka_rescale.operations.cutover.promotion import assert_promotable
from kafka_rescale.operations.cutover.proven import assert_begun, assert_proven, await_near_proof
from kafka_rescale.operations.cutover.read_topics import assert_all_declared
from kafka_rescale.operations.cutover.start_green import start_green
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.compaction import (
    assert_deletions_kept,
    hold_compaction,
    release_compaction,
)
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.modes.choice import mode_of

log = logging.getLogger(__name__)


def run_cutover(
    application: Application, connection: KafkaConnection, *, owner: str, airflow: str = ""
) -> dict[str, float]:
    """Cut over from blue to green, or in place to more partitions, or go on with a cutover that was interrupted.

    A failure before promotion rolls back at once, so that blue is down no longer than needed. Brokers that don't
    answer are no failure: the cutover tries every step again, before the promotion until the limit of the pause is
    reached, after it for as long as it takes.

    :param owner: the run that holds the lease.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :returns: seconds per part of the downtime.
    :raises UnsafeState: the expansion in progress was begun in another mode than the declared one.
    :raises Exception: what went wrong; blue runs again unless the promotion had happened.
    """
    cutover = Cutover(Rescale.open(application, connection, owner, airflow))
    cutover.assert_mode()
    try:
        cutover.until_promoted()
    except Exception as error:
        # Whatever the error is: blue is down, and no other task starts it before this one has failed for good.
        log.error("the cutover failed before promotion: %s", error)
        done = roll_back(
            application, connection, owner=owner, reason=str(error), airflow=airflow, attempt=cutover.attempt
        )
        if done.was_done_before or not done.is_done:
            cutover.let_go()
        # Another try of this task may have promoted green, and may be dead by now: somebody has to start green.
        # Whatever the error is: this try may have met the promotion at any of its steps.
        if not cutover.is_promoted_after_all():
            raise
        log.warning("it is promoted all the same: %s; going on behind the promotion", error)
    return cutover.after_promotion()


class Cutover:
    """The steps. The process may be killed at any instruction of a step; then the step can be called again."""

    def __init__(self, rescale: Rescale) -> None:
        self._rescale = rescale
        self._journal: Journal | None = None
        # Has the settings of changelogs that this process has begun to hold, until they are held for the pause.
        self._holding: Journal | None = None
        self._timings = Timings({})
        self._has_held = self._has_stopped = self._has_started = self._is_prepared = False
        self._left_before, self._limit = within(READY_SECONDS), PauseLimit(rescale.application)
        self._doing = "the control topic to be read"
        self._jobs: JobsBeside | None = None
        self._signs: dict[str, int] = {}
        self._seen: dict[TopicPartition, int] = {}

    def assert_mode(self) -> None:
        """Refuse an expansion that was begun in another mode than the declared one."""
        journal = insist(self._read, self._told)
        begun = mode_of(journal.plan).mode
        if begun is not self._rescale.application.mode:
            raise UnsafeState(
                f"expansion of {journal.plan.application}",
                found=f"an expansion that was begun with mode {begun}",
                expected="the other mode, which the application file declares by now",
                remedy=f"Declare `mode: {begun}`. {journal.way_on}",
            )

    def until_promoted(self) -> Journal:
        """Run everything up to and including the promotion; try failed steps again while the pause may last."""
        self._left_before = within(READY_SECONDS)

        def left() -> float:
            if self._journal is None:
                return math.inf
            return self._left_before() if self._journal.phase is Phase.WARMING else self._limit.left(self._journal)

        try:
            return insist(self._step_by_step, self._told, seconds_left=left)
        finally:
            gc.unfreeze()
            if self._jobs is not None:
                self._jobs.close()

    def _step_by_step(self) -> Journal:
        """Go on from the phase in the journal: the journal knows what has been done."""
        try:
            journal = self._read()
            self._timings = Timings({**journal.timings, **self._timings})
            journal.assert_not_rolled_back()
            if journal.phase is Phase.WARMING:
                journal = self._prepare(journal)
            if journal.phase is Phase.QUIESCING:
                journal = self._quiesce(journal)
            if journal.phase is Phase.QUIESCED:
                journal = self._await_delta(journal)
            if journal.phase is Phase.CAUGHT_UP:
                journal = self._promote(journal)
        except ClusterOutage as outage:
            log.warning("trying again after: %s", outage)
            if self._jobs is not None:
                self._jobs.note_outage()
            raise
        return journal

    @property
    def attempt(self) -> Journal | None:
        """The attempt that this process works on, as it was seen last; None before the journal was read."""
        return self._rescale.attempt

    def is_promoted_after_all(self) -> bool:
        """Whether this attempt was promoted in spite of an error, and this owner has to go on."""
        with suppress(Fenced, UnsafeState):
            return insist(self._rescale.journal, self._told).is_promoted
        return False

    def let_go(self) -> None:
        """Undo what this process has done, if another process has gone on with the attempt, or has rolled it back.

        The other process has started whatever was already stopped when it looked. What this process stopped a
        moment later is still down: it is started here. The other process may also have taken the lease and given
        it back. An attempt within its pause, or about to start green, needs down what is down: then this starts
        nothing, and the changelogs stay held.
        """
        journal = insist(self._rescale.control.read, self._told).journal
        if journal is None or journal.phase in {*BLUE_STOPPED, Phase.PROMOTED}:
            return
        if self._holding is not None:
            self._release(journal, self._holding)
        plan = journal.plan
        try:
            if self._has_held:
                producers.release(self._rescale)
        finally:
            owner = green(plan) if journal.is_promoted else blue(plan)
            # In place, what was stopped as blue runs as green.
            if self._has_stopped and owner.application_id == plan.blue:
                start(self._rescale.lifecycle, owner, self._told)
        self._has_held = self._has_stopped = False

    def _release(self, present: Journal, holding: Journal) -> None:
        """Release the changelogs, unless the present attempt needs them held: then it releases them at its end."""
        is_needed = present.phase in {Phase.WARMING, Phase.STARTED}
        if is_needed and not present.compaction_lags.keys().isdisjoint(holding.compaction_lags):
            return
        undo = release_compaction if present.is_verified else mode_of(holding.plan).roll_back
        insist(lambda: undo(self._rescale, holding), self._told)
        self._holding = None

    def after_promotion(self) -> dict[str, float]:
        """Run everything after the promotion. There is no way back: each step waits until the cluster answers.

        Two tries of the task may be here at once. The slower one may find green running, or the phase gone on,
        which looks like a fault to it. Then it goes on from where the other try is.
        """
        while True:
            try:
                return insist(self._forward, self._told)
            except UnsafeState as error:
                known, present = self._journal, insist(self._rescale.journal, self._told)
                if known is None or _way_gone(present) == _way_gone(known):
                    raise
                log.warning("another try of this task has gone on; going on from there after: %s", error)

    def _forward(self) -> dict[str, float]:
        self._doing, self._has_started = "what follows the promotion: growth, offsets, start", False
        journal = self._read()
        if journal.phase is Phase.PROMOTED:
            timings = self._timings = Timings({**journal.timings, **self._timings})
            journal = self._journal = mode_of(journal.plan).before_start(self._rescale, journal, timings)
            journal = start_green(self._rescale, journal, timings, self._note_start)
            warn_of_unpinned(self._rescale)
        else:
            self.let_go()
        return dict(journal.timings)

    def _prepare(self, journal: Journal) -> Journal:
        bridge = ", and the bridge," if journal.plan.bridges else ""
        self._doing = f"the job beside the cutover{bridge} to be ready"
        assert_deletions_kept(journal)
        assert_begun(self._rescale, journal)
        mode_of(journal.plan).prepare(self._rescale, journal, self._beside(journal), self._seen)
        if not self._is_prepared:
            # In place, that may have taken all of its time. What follows may meet an outage as well.
            self._is_prepared, self._left_before = True, within(READY_SECONDS)
        await_near_proof(self._rescale, journal)
        # Asked once more, right before the pause: the held processes may have ended since.
        assert_waiting(self._rescale, self._read())
        await_positions(self._rescale, journal.plan)
        assert_none_late(self._rescale.connection, self._rescale.control.read())
        assert_may_grow(self._rescale.admin, journal.plan)
        assert_as_pinned(self._rescale)
        assert_all_declared(self._rescale, journal.plan)
        producers.assert_not_expanding(self._rescale)
        # Verify compares green's records below the offsets captured at promotion. Until then, compaction must not
        # remove these records because green has written newer ones. It is allowed again when verify has passed.
        hold_compaction(self._rescale, journal, self._note_hold)
        blue_ran = self._rescale.lifecycle.is_running(blue(journal.plan))
        self._timings = Timings({})
        # Else Python looks through all that Airflow has imported, several times in the pause: some 50 ms each.
        gc.collect()
        gc.freeze()
        return self._advance(Phase.QUIESCING, pause_started_ms=now_ms(), timings={}, blue_ran=blue_ran)

    def _quiesce(self, journal: Journal) -> Journal:
        rescale, plan, self._holding = self._rescale, journal.plan, None
        stopped = mode_of(plan).was_stopped_before(journal)
        with self._part("drain", "paused inputs to be processed to their ends"):
            self._has_held = True
            producers.hold(rescale, lambda: self._limit.seconds_left(journal))
            quiesce.drain(rescale, plan, 0 if stopped else self._limit.seconds_left(journal))
        with self._part("quiesce", f"{plan.blue} to stop"):
            if not stopped:
                left = self._limit.seconds_left(journal)
                self._advance(Phase.QUIESCING, stop_asked=True)
                self._has_stopped = True
                stop_in_time(rescale.lifecycle, blue(plan), left)
        with self._part("prove", f"the proof that {plan.blue} is gone"):
            captured = quiesce.prove_gone(rescale, plan, self._limit.seconds_left(journal))
        return self._advance(Phase.QUIESCED, captured=captured, timings=dict(self._timings))

    def _await_delta(self, journal: Journal) -> Journal:
        jobs, mode = self._beside(journal), mode_of(journal.plan)
        # Only signs from after the stop count: a job may have died while the inputs were drained.
        self._signs = signs_of(jobs, mode.jobs_behind(journal.plan))
        with self._part(*mode.delta):
            mode.await_delta(self._rescale, journal, jobs, self._seen, lambda: self._limit.seconds_left(journal))
        return self._advance(Phase.CAUGHT_UP, timings=dict(self._timings))

    def _promote(self, journal: Journal) -> Journal:
        plan, mode = journal.plan, mode_of(journal.plan)
        with self._part("promote", "the promotion"):
            if needed := mode.jobs_behind(plan):
                jobs = self._beside(journal)
                await_signs(jobs, self._signs or signs_of(jobs, needed), self._limit.seconds_left(journal))
            begins, known = mode.offsets_at_promotion(
                self._rescale, journal, lambda: self._limit.seconds_left(journal)
            )
            # Behind whatever is waited for above, so that this still holds at the promotion. Side by side, because
            # both ask brokers.
            with ThreadPoolExecutor(1) as beside:
                promotable = beside.submit(self._assert_promotable, journal)
                last = assert_proven(self._rescale, journal, begins)
                input_ends = self._rescale.admin.end_offsets([i.topic for i in plan.inputs])
            promotable.result()
            if last and "delta" in self._timings and "delta_proof" not in self._timings:
                self._timings.split("delta", "delta_proof", last.last_seconds)

            def promoted(state: ControlState) -> dict[str, Generations]:
                _assert_not_promoted(journal, state)
                required_proofs(journal, state)
                return {Concern.GENERATIONS: promoted_generations(journal, state.generations, begins)}

            return self._advance(
                Phase.PROMOTED,
                records=promoted,
                input_ends=input_ends,
                timings=dict(self._timings),
                **known,
            )

    def _assert_promotable(self, journal: Journal) -> None:
        assert_promotable(self._rescale, journal)
        assert_as_pinned(self._rescale)

    def _beside(self, journal: Journal) -> JobsBeside:
        """Return the follower of the jobs. It opens before the pause, unless another process began the pause."""
        if self._jobs is None:
            self._jobs = JobsBeside(self._rescale, journal.plan)
        return self._jobs

    def _read(self) -> Journal:
        return self._seen_last(self._rescale.journal())

    def _advance(self, phase: Phase, **changes: Any) -> Journal:
        return self._seen_last(self._rescale.advance(phase, **changes))

    def _seen_last(self, journal: Journal) -> Journal:
        # If this process is frozen and wakes in a later attempt of the same run, it changes nothing there. And if
        # the control topic is lost, only this process knows whether blue was stopped.
        self._journal, self._rescale = journal, replace(self._rescale, attempt=journal)
        return journal

    @contextmanager
    def _part(self, name: str, what: str) -> Iterator[None]:
        """Measure a part of the pause, and log meanwhile what the cutover waits for."""
        self._doing = what
        with self._timings.part(name):
            yield

    def _note_hold(self, journal: Journal) -> None:
        self._holding = journal

    def _note_start(self) -> None:
        self._doing, self._has_started = "its first output", True

    def _told(self) -> str:
        name = self._rescale.application.application_id
        return state_of_pause(name, self._journal, self._doing, has_started=self._has_started)


def _way_gone(journal: Journal) -> tuple[Phase, bool]:
    """Return how far behind its promotion an attempt is."""
    return journal.phase, bool(journal.green_start)


def _assert_not_promoted(journal: Journal, state: ControlState) -> None:
    """Refuse to promote twice, as a process would that was frozen while another try of its task has promoted.

    :raises Fenced: the journal has gone on.
    """
    present = state.journal
    if present is None or (present.phase, present.attempt) != (Phase.CAUGHT_UP, journal.attempt):
        raise Fenced(
            f"promotion of {journal.plan.green}",
            found="no journal" if present is None else f"phase {present.told} of attempt {present.attempt}",
            expected=f"phase {Phase.CAUGHT_UP} of attempt {journal.attempt}",
            remedy="Nothing to do here: another try of this task has gone on.",
        )
