"""Before a run of a pipeline: create its internal topics, and give every task a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.rack_standbys import RackStandbyTaskAssignor, rack_standby_task_assignor
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage, TimedOut
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.adjustments import (
    NOTHING_ASKED,
    Adjusted,
    Adjustments,
    adjusted,
    still_asked,
    thread_removed,
    with_declared,
)
from kafka_rescale.core.processing.autoscaling import NOT_LOOKED, Scaling
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.exception_handler import exception_handler
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.rebalance import Rebalance
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.core.values import Value
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, poll_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.changelogs import KnownState, known_state
from kafka_rescale.kafka.processing.task_producer import fence
from kafka_rescale.kafka.processing.task_progress import TaskProgress
from kafka_rescale.operations.processing.autoscaling import follow_inputs, note_stable
from kafka_rescale.operations.processing.backfills import require_live
from kafka_rescale.operations.processing.members import members_of
from kafka_rescale.operations.processing.processors import Expansions, expand_processors, hand_over, remember
from kafka_rescale.operations.processing.stream_threads import LONGEST_PAUSE_SECONDS
from kafka_rescale.spark.processing.task_work import RENEW_MS, transactional_id
from kafka_rescale.spark.processing.work import input_ends, works_of

MADE_BEFORE = "the changes of this run were made by an earlier attempt"


@dataclass(frozen=True)
class Prepared:
    """The result of the preparation.

    :param created: internal topics that were missing.
    :param revoked: tasks that were taken from a client that may still have been processing them.
    :param expansions: messages about processors that were asked for.
    :param scaled: what a growth of inputs asks for.
    :param adjustments: messages about the threads that were asked for.
    """

    processing: Processing
    created: tuple[str, ...]
    revoked: tuple[str, ...] = ()
    expansions: tuple[str, ...] = ()
    scaled: Scaling = NOT_LOOKED
    adjustments: tuple[str, ...] = ()

    def __str__(self) -> str:
        made = (f"created {', '.join(self.created)}",) if self.created else ()
        taken = (f"revoked {', '.join(self.revoked)}",) if self.revoked else ()
        threads = (f"{t.name}: {', '.join(t.tasks) or 'no task'}" for t in self.processing.threads)
        said = (*self.adjustments, *self.scaled.messages, *self.expansions)
        return "; ".join((*made, *said, *taken, *threads))


def prepare(
    application: PipelineApplication,
    connection: KafkaConnection,
    run: str,
    asked: Adjustments = NOTHING_ASKED,
    backfill: Backfill | None = None,
) -> Prepared:
    """Create missing internal topics, and rebalance: give every task to a thread for this run.

    This is idempotent: the same run gets the same assignment again. It reads its inputs up to their present ends,
    because a run may be begun again to process what has come since. If a task moves away from a thread that may
    still be at work, it is revoked first, so that this thread can't commit any more. Then another thread gets it.
    New processors get their partitions here, once they have almost caught up, because no task runs between two
    runs.

    :param application: the application, with the id of its generation.
    :param run: ``<dag_id>/<run_id>``.
    :param asked: changes before the rebalance; they are made once per run.
    :param backfill: the interval that the generation processes.
    :raises InvalidInput: the pipeline, its exception handler or its rule for racks can't be imported.
    :raises Refused: a topic that the pipeline reads or writes doesn't exist, or has grown in a way that would tear
        keys from their state; what the interval needs is gone; or no client can take part.
    :raises Outage: a thread that shall be removed is still at work when its timeout is over; or a transaction on
        an input that has grown stays open.
    :raises UnsafeState: an internal topic has another number of partitions than its tasks; or brokers refuse to
        grow one for the processors that the trigger form asks for.
    :raises Fenced: an old run has interfered while processors were given their partitions; run again.
    """
    pipeline, control = pipeline_named(application.pipeline), ControlTopic(connection, application.application_id)
    # Import both now, as long as no task has begun.
    exception_handler(application.uncaught_exception_handler)
    _rack_assignor(application)
    wanted, asked = asked, still_asked(control.read().processing, run, asked)
    adjustments: tuple[str, ...] = (MADE_BEFORE,) if asked != wanted else ()
    if asked.processors is not None:
        require_live(application, asked.processors, backfill)
        expand_processors(application, connection, asked.processors)
    processors, created = remember(application, pipeline, connection, control, backfill)
    scaled = NOT_LOOKED
    if backfill is None:
        scaled = follow_inputs(application, pipeline, connection)
        if scaled.targets:
            processors, _ = remember(application, pipeline, connection, control)
    before = control.read().processing
    expansions = Expansions(processors)
    if before is None or before.run != run:
        if before is not None and asked.remove_from is not None:
            leaving = thread_removed(with_declared(before, application.client_ids), asked.remove_from)[1]
            _wait_for_end(control, leaving, asked.timeout_seconds)
        expansions = hand_over(application, pipeline, connection, processors, run)
    admin, name = ClusterAdmin(connection), application.application_id
    known = known_state(admin, name, pipeline, expansions.processors.tasks)
    ends = input_ends(admin, pipeline, name, expansions.processors, backfill)
    # This also covers an attempt that was killed between its two rebalances.
    revoked = to_fence = before.revoked if before is not None else ()
    while True:
        for task in to_fence:
            fence(connection, transactional_id(name, task))
        processing, told = _rebalance(application, control, known, ends, expansions, run, asked)
        adjustments += told
        to_fence = processing.revoked
        if not to_fence:
            note_stable(application, pipeline, connection)
            return Prepared(processing, created, revoked, expansions.messages, scaled, adjustments)
        revoked += to_fence


def _rebalance(
    application: PipelineApplication,
    control: ControlTopic,
    known: KnownState,
    ends: PartitionOffsets,
    expansions: Expansions,
    run: str,
    asked: Adjustments,
) -> tuple[Processing, tuple[str, ...]]:
    """Assign the tasks, unless this run has its assignment. Record the processors that have switched with it.

    :param ends: up to where the run reads the inputs, also if it has its assignment.
    :returns: the record, and messages about the threads that were asked for.
    """
    done = Adjusted(Processing())

    def assigned(state: ControlState) -> Mapping[str, Value]:
        nonlocal done
        before, at_ms = state.processing, now_ms()
        if before is not None and before.run == run and before.tasks == known.counts and not before.revoked:
            # Another try of the task may have captured later ones, and the first level may have read up to them.
            latest = {
                t: {p: max(end, before.input_ends.get(t, {}).get(p, 0)) for p, end in of.items()}
                for t, of in ends.items()
            }
            return {Concern.PROCESSING: before.model_copy(update={"input_ends": latest})}
        if asked != NOTHING_ASKED and (before is None or before.run != run):
            done = adjusted(before or Processing(), run, asked, application.client_ids)
            before = done.processing
        members = members_of(application, before, known, at_ms)
        rack_assignor = _rack_assignor(application)
        configs = application.assignment_configs
        rebalance = Rebalance(run, at_ms, known.tasks, members, configs, rack_assignor, ends)
        # In the second rebalance, all tasks that move have been revoked, and no thread has them.
        is_second = before is not None and before.run == run and bool(before.revoked)
        return {
            Concern.PROCESSING: rebalance.of(before, () if is_second else at_work(state)),
            Concern.PROCESSORS: expansions.applied_to(state.processors),
        }

    processing = control.update(assigned).processing
    assert processing is not None
    return processing, tuple(done.told(processing))


def _rack_assignor(application: PipelineApplication) -> RackStandbyTaskAssignor | None:
    name = application.rack_standby_task_assignor
    return None if name is None else rack_standby_task_assignor(name)


def _wait_for_end(control: ControlTopic, thread: str | None, timeout_seconds: float | None) -> None:
    """Wait for the end of a thread that shall be removed, if a run that seemed dead still has it."""
    if thread is None or timeout_seconds is None:
        return
    poll_until(
        lambda: thread not in at_work(control.read()),
        seconds=timeout_seconds,
        otherwise=lambda: TimedOut(
            f"stream thread {thread} to end",
            timeout_seconds,
            "Trigger the run again, without a timeout: then the thread's tasks are revoked, and it can't commit.",
        ),
        longest_pause=LONGEST_PAUSE_SECONDS,
    )


def at_work(state: ControlState) -> set[str]:
    """Return the threads that may still be processing: their jobs have not reported their end."""
    processing = state.processing or Processing()
    return {
        processing.thread_for(result.job.split("/", 2)[2])
        for result in state.results.values()
        if result.state == "running" and result.job.startswith("process/")
    }


def is_idle(
    application: PipelineApplication, connection: KafkaConnection, run: str, request: ProcessRequest
) -> bool:
    """Return whether a thread has nothing to do, so that no driver has to be started for it.

    :param run: ``<dag_id>/<run_id>``; the job itself refuses an assignment of another run.
    """
    pipeline, name = pipeline_named(application.pipeline), application.application_id
    state = ControlTopic(connection, name).read()
    processing, processors = state.processing, state.processors
    if processing is None or processing.run != run:
        return False
    tasks = processing.tasks_of(request.thread, levels(pipeline.topology)[request.level - 1])
    if processing.tasks != processors.tasks:
        return False  # the job itself refuses to run then
    try:
        works = works_of(
            ClusterAdmin(connection),
            pipeline,
            name,
            tasks,
            request.state_dir,
            processors,
            request.backfill,
            inputs=processing.input_ends,
        )
    except Outage:
        return False  # a transaction of a killed attempt is open: the job ends it
    ends = {source: end for work in works for source, end in work.ends.items()}
    # Keys that moved to new processors still have to be deleted in their old place, in this run or a later run.
    as_of = {source: work.processors for work in works for source in work.ends if work.processors > work.initial}
    progress = TaskProgress(connection, name, ends, 0)
    try:
        return progress.is_idle(now_ms() - RENEW_MS, as_of)
    finally:
        progress.close()
