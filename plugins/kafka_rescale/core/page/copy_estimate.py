"""The progress of each job of an expansion, and the time that the job still needs at its present pace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.run import RUN
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import Value

ORDER = (
    "restore",
    "warm_up",
    "lag_gate",
    "prewarm",
    "rehearse",
    "move",
    "catch_up",
    "gate_all",
    "prove",
    "bridge",
)
IN_GROUPS = frozenset(step.task for step in RUN if step.is_per_stage)
"""The jobs whose tasks are in the task groups of the stages."""
BRIDGE, PROVE = "bridge", "prove"
AT_WORK = frozenset({"running", "ready", "holding", "paused", "job_not_ready"})
STEPS: dict[Phase, str] = {
    Phase.QUIESCING: "cutover",
    Phase.QUIESCED: "cutover",
    Phase.CAUGHT_UP: "cutover",
    Phase.PROMOTED: "start",
    Phase.STARTED: "verify",
    Phase.VERIFIED: "callback",
    Phase.ROLLING_BACK: "roll_back",
}


class JobProgress(Value):
    """The progress of one job or gate.

    :param run: the run of the job, ``<dag_id>/<run_id>``.
    :param task_id: the task of the job in this run.
    :param stage: the number of the stage, counting from 1 at the most downstream stage. None for a job of all
        stages.
    :param copied: how many offsets of the sources have been copied. None if the number is not known yet or has no
        meaning for the job. The same holds for ``total`` and ``lag``.
    :param total: how many offsets the sources have from where the copies begin.
    :param lag: how many offsets are left.
    :param share: the part of the work that is done, from 0 to 1. None if this is not known yet. A job that is done
        stays at 1, however many records have come into the sources since.
    :param eta_seconds: the time until the job is done at the present pace. None if the job is not at work, if the
        lag does not shrink, or if the pace is not known yet.
    :param has_pace: whether the pace is known.
    """

    job: str
    run: str
    task_id: str
    step: str
    stage: int | None
    state: str
    attempt: int
    records: int
    bytes: int
    seconds: float
    copied: int | None
    total: int | None
    lag: int | None
    share: float | None
    eta_seconds: float | None
    has_pace: bool
    detail: str


class Work(Value):
    """The present work of an expansion.

    :param step: the name of a job or task, such as ``cutover``, ``start``, ``verify`` or ``callback``. Empty if no
        expansion is in progress.
    :param stages: the indexes of the stages that the step works on.
    """

    step: str = ""
    stages: tuple[int, ...] = ()


def job_progress(result: JobResult, plan: Plan, *, is_promoted: bool = True) -> JobProgress:
    """Return the progress of one job, from its result in the control topic.

    :param plan: the plan. It names the stages, which are the task groups of the run.
    :param is_promoted: whether the promotion is done. Before it, a bridge has a position, but copies nothing.
    """
    step, _, stage = result.job.partition("/")
    groups = plan.stages if step in IN_GROUPS else ()
    group = next((f"{s.name}." for s in groups if stage == str(s.index)), "")
    waits = step == BRIDGE and not is_promoted
    measured = () if waits else result.partitions
    total, lag = _total(measured), _left(measured)
    is_paced = lag is not None or step == PROVE
    copied = total - lag if total is not None and lag is not None else None
    return JobProgress(
        job=result.job,
        run=result.run,
        task_id=f"{group}{step}",
        step=step,
        stage=int(stage) if stage else None,
        state=result.state,
        attempt=result.attempt,
        records=result.records,
        bytes=result.bytes,
        seconds=result.seconds,
        copied=copied,
        total=total,
        lag=lag,
        share=_share(result.state, copied, total),
        eta_seconds=_seconds_left(result) if result.state in AT_WORK and not waits and is_paced else None,
        has_pace=result.lags.has_pace and not waits and step != PROVE,
        detail=result.waits or ("waits for the promotion" if waits and result.state in AT_WORK else result.detail),
    )


def _total(measured: Sequence[PartitionProgress]) -> int | None:
    """Return how many offsets the sources have. What retention has deleted before a copy began is none of them."""
    known = [p.whole for p in measured if p.whole is not None]
    return sum(known) if measured and len(known) == len(measured) else None


def _left(measured: Sequence[PartitionProgress]) -> int | None:
    return sum(p.left for p in measured) if measured and all(p.is_left_known for p in measured) else None


def _seconds_left(result: JobResult) -> float | None:
    """Return the time left. The lag of a proof is what is not read, and does not tell how long Spark sorts it."""
    return result.seconds_left if result.job == PROVE else result.lags.seconds_left()


def _share(state: str, copied: int | None, total: int | None) -> float | None:
    if state == "done":
        return 1.0
    if copied is None or total is None:
        return None
    return copied / total if total else 1.0


def in_order(results: Iterable[JobResult]) -> list[JobResult]:
    """Return the results of jobs in the order of a run: first stage by stage, then the jobs of all stages."""
    return sorted((r for r in results if r.job.partition("/")[0] in ORDER), key=_place)


def work_of(control: ControlState) -> Work:
    """Return the present work of an expansion: by the journal's phase, or, while warming, by the newest job."""
    journal = control.journal
    if journal is None or not journal.in_progress:
        return Work()
    everything = tuple(s.index for s in journal.plan.stages)
    if journal.phase is not Phase.WARMING:
        is_moving = journal.phase is Phase.PROMOTED and journal.plan.is_in_place and not journal.green_start
        return Work(step="move" if is_moving else STEPS[journal.phase], stages=everything)
    # Another run of this attempt may have died, and its last job still looks as if it were at work.
    jobs = [r for r in in_order(control.results.values()) if r.job != BRIDGE and r.run == journal.owner]
    newest = next((r for r in reversed(jobs) if r.state in AT_WORK), jobs[-1] if jobs else None)
    if newest is None:
        return Work(step="expand", stages=everything[:1])
    return _warming(journal, newest, everything)


def _warming(journal: Journal, newest: JobResult, everything: tuple[int, ...]) -> Work:
    step, _, stage = newest.job.partition("/")
    if not stage:
        return Work(step=step, stages=everything)
    if newest.state in AT_WORK or step != "lag_gate":
        return Work(step=step, stages=(int(stage),))
    following = int(stage) + 1
    if following in everything:
        return Work(step="expand", stages=(following,))
    return Work(step="prewarm", stages=everything)


def _place(result: JobResult) -> tuple[bool, int, int]:
    step, _, stage = result.job.partition("/")
    return (not stage, int(stage or 0), ORDER.index(step))
