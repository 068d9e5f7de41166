"""The whole run of an expansion in one list, from the first check to the end.

Read ``RUN`` from top to bottom: every task in its order, what it does, and what happens if it fails. The DAG is
made of this list, and a run without Airflow follows it. A task calls a function of ``operations`` or starts the
Spark job of the same name; the details are there.

A task does not wait for tasks that only the other mode has. Tasks of a stage come once per sub-topology, the most
downstream stage first. The first task of a stage waits for the last task of the stage before. A task behind the
stages waits for the tasks of the last stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import groupby

from kafka_rescale.core.application.streams import Mode


class Begins(Enum):
    """When a task begins, depending on how the tasks ended that it waits for."""

    ALL_SUCCEEDED = "all of them have succeeded"
    SOME_SKIPPED = "none of them has failed, and one has succeeded"
    ONE_FAILED = "one of them has failed, or has never begun because of a failure"
    ALL_ENDED = "all of them have ended in any way, even if a person has marked the run as failed or as success"


class Tries(Enum):
    """How long a task is tried again while an outage lasts; an error that needs a person fails at once."""

    A_FEW = "some seconds: another run can go on where this one has ended"
    MINUTES = "some minutes: the application works meanwhile, and only this run would have to be continued"
    UNTIL_ONE_RUNS = "about ten minutes: perhaps no generation runs until the task has succeeded"


class IfItFails(StrEnum):
    """What happens to the run and to the application when a task has failed for good."""

    NOTHING_BEGUN = "The run ends. Nothing has been created, and the application goes on as it is."
    COPIES_STAY = (
        "`roll_back` closes the attempt. The application goes on as it is, and the next run continues with what "
        "exists of the new topics."
    )
    BLUE_GOES_ON = (
        "Before the promotion, what was stopped is started again, and the attempt is closed. After it there is "
        "no way back: the application may be down until the task has been cleared and has succeeded."
    )
    ONLY_TOLD = "The run ends as failed, and goes on until then."
    GREEN_GOES_ON = "The new generation works on. The expansion is not complete before the task has been cleared."
    BY_HAND = "What was stopped may be down: start it by hand, as the log says, and clear the task."


@dataclass(frozen=True)
class Step:
    """One task of a run, or one per stage.

    :param task: its id. The task of a stage has the stage's name in front.
    :param does: what it does, in one sentence.
    :param waits_for: ids of the tasks that it waits for.
    :param mode: the only mode that has it; None if both have it.
    :param is_per_stage: whether each stage has such a task.
    :param is_job: whether it is the Spark job of this name.
    :param is_beside: whether it runs beside the cutover, which waits until it is up before it stops anything.
    :param is_urgent: whether a pause begins or ends later if the task waits for a free slot.
    :param unless: why a run without failures may skip it; empty if every run has it.
    """

    task: str
    does: str
    waits_for: tuple[str, ...]
    if_it_fails: IfItFails
    mode: Mode | None = None
    begins: Begins = Begins.ALL_SUCCEEDED
    tries: Tries = Tries.A_FEW
    is_per_stage: bool = False
    is_job: bool = False
    is_beside: bool = False
    is_urgent: bool = False
    unless: str = ""


RUN: tuple[Step, ...] = (
    Step(
        "preflight",
        "Look at everything, and refuse with all reasons at once what can't work.",
        waits_for=(),
        if_it_fails=IfItFails.NOTHING_BEGUN,
    ),
    Step(
        "plan",
        "Show the plan; a dry run ends here, any other takes the lease and begins the journal.",
        waits_for=("preflight",),
        if_it_fails=IfItFails.NOTHING_BEGUN,
    ),
    Step(
        "approve_plan",
        "Ask a person before anything is created, if the run's param says so.",
        waits_for=("plan",),
        if_it_fails=IfItFails.COPIES_STAY,
    ),
    # Stage by stage.
    Step(
        "expand",
        "Grow the stage's outputs; with mode blue_green, create its topics of the new generation.",
        waits_for=("approve_plan",),
        if_it_fails=IfItFails.COPIES_STAY,
        is_per_stage=True,
    ),
    Step(
        "restore",
        "Copy the stage's state to the new topics, each record to its new partition.",
        waits_for=("expand",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        is_per_stage=True,
        is_job=True,
    ),
    Step(
        "warm_up",
        "Copy what the application has written meanwhile, until the copies are near.",
        waits_for=("restore",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        is_per_stage=True,
        is_job=True,
    ),
    Step(
        "lag_gate",
        "Wait until the copies of the stage are within the acceptable lag; in the last stage, also for a bridge.",
        waits_for=("warm_up",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        is_per_stage=True,
    ),
    # All stages together, while the application runs.
    Step(
        "prewarm",
        "Let the new generation restore its stores behind the warm-up gate, and stop it again.",
        waits_for=("lag_gate",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        unless="It is skipped where the application can't be pre-warmed.",
    ),
    Step(
        # The cutover waits for this job. If it is started again within the pause, it must not wait for a slot.
        "catch_up",
        "Keep every copy near and compared; copy and compare the last delta within the pause.",
        waits_for=("lag_gate", "prewarm"),
        if_it_fails=IfItFails.BLUE_GOES_ON,
        mode=Mode.BLUE_GREEN,
        begins=Begins.SOME_SKIPPED,
        # The job may run for days while the run waits for the switch.
        tries=Tries.MINUTES,
        is_job=True,
        is_beside=True,
        is_urgent=True,
    ),
    Step(
        # After the pre-warming, in which nothing is copied.
        "gate_all",
        "Wait until all copies are within the acceptable lag at the same time, beside a catch_up that is ready.",
        waits_for=("lag_gate", "prewarm"),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        begins=Begins.SOME_SKIPPED,
        is_urgent=True,
    ),
    Step(
        "prove",
        "Compare the whole state of both generations while the application works; no promotion goes without it.",
        waits_for=("gate_all",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.BLUE_GREEN,
        is_job=True,
    ),
    Step(
        "rehearse",
        "Read the whole state beside the running application, and find what could not be moved.",
        waits_for=("expand",),
        if_it_fails=IfItFails.COPIES_STAY,
        mode=Mode.IN_PLACE,
        is_job=True,
    ),
    Step(
        "approve_cutover",
        "Ask a person before the application is stopped, if the run's param says so.",
        waits_for=("prove", "rehearse"),
        if_it_fails=IfItFails.COPIES_STAY,
    ),
    Step(
        "await_window",
        "Wait for the window of the file or the time that a person has named, while the copies are kept near; "
        "before it, let a pre-warmed generation restore what was copied since.",
        waits_for=("approve_cutover",),
        if_it_fails=IfItFails.COPIES_STAY,
        tries=Tries.MINUTES,
        is_urgent=True,
    ),
    # The pause.
    Step(
        # One job for all stages, up before the stop: starting a driver takes longer than most moves.
        "move",
        "Be up before the application is stopped; then move the keys of all stages that belong elsewhere.",
        waits_for=("await_window",),
        if_it_fails=IfItFails.BLUE_GOES_ON,
        mode=Mode.IN_PLACE,
        tries=Tries.UNTIL_ONE_RUNS,
        is_job=True,
        is_beside=True,
        is_urgent=True,
    ),
    Step(
        "cutover",
        "Stop the application, carry over the rest, promote, let topics grow, and start the new generation.",
        waits_for=("await_window",),
        if_it_fails=IfItFails.BLUE_GOES_ON,
        tries=Tries.UNTIL_ONE_RUNS,
        is_urgent=True,
    ),
    Step(
        "pause_alert",
        "Tell a person if the pause lasts longer than the application file allows.",
        waits_for=("await_window",),
        if_it_fails=IfItFails.ONLY_TOLD,
        is_urgent=True,
        unless="There is one only where the application file declares `pause_alert_seconds`.",
    ),
    # The new generation works.
    Step(
        "verify",
        "Check the start offsets and the inputs, and compare what was not compared before the promotion.",
        # Not for the jobs beside the cutover: if a person has marked `cutover` as success within the pause, they
        # wait for what never comes. Then this task has to refuse, so that `roll_back` begins.
        waits_for=("cutover",),
        if_it_fails=IfItFails.GREEN_GOES_ON,
        tries=Tries.MINUTES,
        is_job=True,
    ),
    Step(
        "callback",
        "Call the application back, record the end, and give the lease back: the expansion is complete.",
        waits_for=("catch_up", "move", "verify"),
        if_it_fails=IfItFails.GREEN_GOES_ON,
        tries=Tries.MINUTES,
    ),
    Step(
        # Airflow judges a run by its leaves. If this task runs, `callback` has never begun, so the run fails.
        "roll_back",
        "Start the application again as it was; behind the promotion, only say what is left to do.",
        waits_for=(
            "catch_up",
            "gate_all",
            "prove",
            "rehearse",
            "approve_cutover",
            "await_window",
            "move",
            "cutover",
            # A person may mark `cutover` as success within the pause. Then `verify` is the first task that fails.
            "verify",
        ),
        if_it_fails=IfItFails.BY_HAND,
        begins=Begins.ONE_FAILED,
        tries=Tries.UNTIL_ONE_RUNS,
        is_urgent=True,
        unless="It is skipped where nothing has failed.",
    ),
    Step(
        # A mark of the whole run ends or skips every other task, `roll_back` too. It must not wait for `callback`:
        # Airflow would no longer judge a run by that task.
        "ensure_running",
        "See to it that a generation runs, if a person has marked the run before its end.",
        waits_for=("cutover", "verify", "roll_back"),
        if_it_fails=IfItFails.BY_HAND,
        begins=Begins.ALL_ENDED,
        tries=Tries.UNTIL_ONE_RUNS,
        is_urgent=True,
        unless="It does nothing in other runs.",
    ),
)


@dataclass(frozen=True)
class Task:
    """A step of one run, at its place in it.

    :param stage: counting from 1 at the most downstream; None for all stages.
    :param task_id: its id in Airflow. The task of a stage has the stage's name in front.
    :param waits_for: ids of the tasks that it waits for.
    """

    step: Step
    stage: int | None
    task_id: str
    waits_for: tuple[str, ...]


def steps_of(mode: Mode) -> tuple[Step, ...]:
    """Return the steps that a mode has, in their order."""
    return tuple(step for step in RUN if step.mode in {None, mode})


def tasks_of(mode: Mode, stages: Sequence[str]) -> tuple[Task, ...]:
    """Return every task of a run in its order; the tasks of stages come stage by stage.

    :param stages: names of the stages, the most downstream first.
    """
    tasks: list[Task] = []
    latest: dict[str, str] = {}
    for step, stage, is_first in _in_order(mode, len(stages)):
        before = [latest[each] for each in step.waits_for if each in latest]
        if is_first and stage != 1:
            before = [tasks[-1].task_id]
        task_id = step.task if stage is None else f"{stages[stage - 1]}.{step.task}"
        tasks.append(Task(step, stage, task_id, tuple(before)))
        latest[step.task] = task_id
    return tuple(tasks)


def _in_order(mode: Mode, stages: int) -> Iterator[tuple[Step, int | None, bool]]:
    """Yield each step with its stage, and whether it is the stage's first step."""
    for is_per_stage, found in groupby(steps_of(mode), key=lambda step: step.is_per_stage):
        steps = tuple(found)
        if not is_per_stage:
            yield from ((step, None, False) for step in steps)
            continue
        for stage in range(1, stages + 1):
            yield from ((step, stage, step is steps[0]) for step in steps)
