"""The steps of a cutover for one application, each with the names that it will touch, known beforehand.

A person reads them before the approval. The dry run of Vitess' traffic switcher prints its steps in the same way.
The order is the order in ``operations.cutover.cutover``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from kafka_rescale.core.application.commands import filled
from kafka_rescale.core.application.instance import Instance
from kafka_rescale.core.application.lifecycles import ManualLifecycle, PythonLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.plan.plan import Move, Plan


class Moment(StrEnum):
    """When a step is done."""

    BEFORE = "before the pause"
    PAUSE = "in the pause"
    PROMOTION = "the promotion"
    AFTER = "in the pause, only forward"
    RUNNING = "behind the pause"


@dataclass(frozen=True)
class CutoverStep:
    """One step.

    :param does: what is done, in a sentence.
    :param names: the topics, groups or commands that it touches or looks at, in order.
    """

    moment: Moment
    does: str
    names: tuple[str, ...] = ()


def cutover_steps(plan: Plan, application: Application) -> tuple[CutoverStep, ...]:
    """Return the steps of the cutover of a plan, in their order."""
    return (
        *_before(plan, application),
        *_until_stopped(plan, application),
        *_promotion(plan, application),
        *_behind(plan, application),
    )


def steps_to_come(control: ControlState, application: Application) -> tuple[CutoverStep, ...]:
    """Return the steps of the cutover of the expansion in progress; no steps once it is promoted."""
    journal = control.journal
    if journal is None or not journal.in_progress or journal.is_promoted or journal.rollback_reason:
        return ()
    return cutover_steps(journal.plan, application)


def _before(plan: Plan, application: Application) -> Iterator[CutoverStep]:
    if plan.changelogs and not plan.is_in_place:
        yield CutoverStep(
            Moment.BEFORE,
            "Require the proof of these copies. The promotion asks for it once more.",
            _pairs(plan.changelogs),
        )
    if _is_held(application):
        yield CutoverStep(
            Moment.BEFORE,
            f"Start {plan.green} at the door of its group, and wait until its processes tell that they wait.",
            (_command(application, "start_held", green(plan)), f"group {gate_group(plan.green)}"),
        )
    jobs = ["move"] if plan.is_in_place else ["catch_up", *(["bridge"] if plan.bridges else [])]
    if not plan.is_in_place or plan.growing:
        yield CutoverStep(
            Moment.BEFORE, "Wait until the jobs beside the cutover say that they are ready.", tuple(jobs)
        )
    if growing := _growing(plan):
        yield CutoverStep(Moment.BEFORE, "Ask the brokers whether they would grow the inputs.", growing)
    if plan.changelogs:
        yield CutoverStep(
            Moment.BEFORE,
            "Keep every record of these changelogs from compaction, until verify has passed.",
            _targets(plan.changelogs),
        )


def _until_stopped(plan: Plan, application: Application) -> Iterator[CutoverStep]:
    if held := tuple(_producers(application, "stop")):
        yield CutoverStep(Moment.PAUSE, "Hold the producers of paused inputs.", held)
    if drained := [i.topic for i in plan.inputs if i.policy is InputPolicy.PAUSED and i.target != i.current]:
        yield CutoverStep(
            Moment.PAUSE, f"Wait until {plan.blue} has processed these to their ends.", tuple(drained)
        )
    yield CutoverStep(Moment.PAUSE, f"Stop {plan.blue}.", (_command(application, "stop", blue(plan)),))
    yield CutoverStep(
        Moment.PAUSE,
        f"Prove that {plan.blue} is gone: no members, no open transaction, nothing that still moves.",
        (f"group {plan.blue}", *(m.source for m in plan.moves)),
    )
    if plan.is_in_place:
        yield CutoverStep(
            Moment.PAUSE, "Check the records that the rehearsal has not seen.", _sources(plan.growing)
        )
        return
    if plan.changelogs:
        yield CutoverStep(Moment.PAUSE, "Copy the last delta, and compare it.", _pairs(plan.changelogs))
    if plan.repartitions:
        yield CutoverStep(Moment.PAUSE, "Carry over the records in flight.", _pairs(plan.repartitions))


def _promotion(plan: Plan, application: Application) -> Iterator[CutoverStep]:
    within = f"within {application.max_pause_seconds} s of the begin of the pause"
    yield CutoverStep(
        Moment.PROMOTION,
        f"Promote {plan.green} in one transaction, {within}. Until here, whatever fails starts {plan.blue} again; "
        f"from here on, {'there is no way back' if plan.is_in_place else 'the way back is another expansion'}.",
        ("topic _kafka_rescale",),
    )
    if plan.is_in_place and plan.growing:
        yield CutoverStep(Moment.AFTER, "Grow the application's own topics.", tuple(map(_grown, plan.growing)))
        yield CutoverStep(
            Moment.AFTER, "Wait until the move job has moved the keys that move.", _sources(plan.growing)
        )
    if growing := _growing(plan):
        yield CutoverStep(Moment.AFTER, "Grow the inputs.", growing)


def _behind(plan: Plan, application: Application) -> Iterator[CutoverStep]:
    read = tuple(i.green_topic for i in plan.inputs)
    yield CutoverStep(
        Moment.AFTER,
        f"Commit the offsets that {plan.green} starts from.",
        (f"group {plan.green}", *read, *(m.target for m in plan.repartitions)),
    )
    if _is_held(application):
        does = f"Let {plan.green} in, as these offsets do. Only if it no longer waits at the door, start it."
    elif isinstance(application.lifecycle, PythonLifecycle):
        does = f"Start {plan.green}. Or let it in, if its class has `start_held` and it waits at the door."
    else:
        does = f"Start {plan.green}."
    if plan.not_copied:
        does = f"{does} {told_not_copied(plan.not_copied)}."
    yield CutoverStep(Moment.AFTER, does, (_command(application, "start", green(plan)),))
    if released := tuple(_producers(application, "start")):
        yield CutoverStep(Moment.AFTER, "Release the producers.", released)
    if not plan.is_in_place:
        yield CutoverStep(Moment.RUNNING, f"See that {plan.blue} does not come back.", (f"group {plan.blue}",))
    if plan.bridges:
        yield CutoverStep(
            Moment.RUNNING, "The bridge carries on what comes into the old topics.", _pairs(plan.bridges)
        )


def _is_held(application: Application) -> bool:
    """Whether the file declares a held start. Only the workers know whether a class of the user offers it."""
    return getattr(application.lifecycle, "start_held", None) is not None


def _growing(plan: Plan) -> tuple[str, ...]:
    return tuple(_grown_input(i) for i in plan.inputs if i.grows)


def _grown_input(read: InputPlan) -> str:
    return f"{read.topic} {read.current} -> {read.target}"


def _grown(move: Move) -> str:
    return f"{move.source} {move.source_partitions} -> {move.target_partitions}"


def _pairs(moves: Iterable[Move]) -> tuple[str, ...]:
    return tuple(f"{m.source} -> {m.target}" for m in moves)


def _sources(moves: Iterable[Move]) -> tuple[str, ...]:
    return tuple(m.source for m in moves)


def _targets(moves: Iterable[Move]) -> tuple[str, ...]:
    return tuple(m.target for m in moves)


def _command(application: Application, name: str, instance: Instance) -> str:
    """Return what starts or stops an instance set, as it will be called."""
    lifecycle = application.lifecycle
    if isinstance(lifecycle, ManualLifecycle):
        return f"a person, who is asked for it (lifecycle.type: {lifecycle.type})"
    if isinstance(lifecycle, PythonLifecycle):
        return f"{lifecycle.callable}.{name}"
    prefix = application.internal_prefix(instance.application_id)
    return filled(lifecycle.commands[name], replace(instance, internal_topic_prefix=prefix))


def _producers(application: Application, name: str) -> Iterator[str]:
    holders = [read.producers for read in application.inputs if read.producers is not None]
    # Several inputs may have one producer.
    yield from dict.fromkeys(
        f"application {each.application}" if each.application is not None else each.commands[name]
        for each in holders
    )
