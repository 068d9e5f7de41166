"""How far each job of an expansion is, and when it will be done at its present pace."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
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
    """One job or gate.

    :param task_id: its task in ``run``, ``<dag_id>/<run_id>``.
    :param stage: counting from 1 at the most downstream stage; None for a job of all stages.
    :param copied: how many offsets of the sources have been copied. None if that is not known yet, or means
        nothing for the job; the same holds for ``total`` and ``lag``.
    :param total: how many offsets the sources have.
    :param lag: how many offsets are left.
    :param share: how much of its work is done, from 0 to 1; None if that is not known yet. A job that is done
        stays at 1, however many records have come into the sources since.
    :param eta_seconds: until it is done at the present pace; None if it is done, if the lag does not shrink, or if
        the pace is not known yet.
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
    """What an expansion is doing.

    :param step: a job's name, ``cutover``, ``start``, ``verify`` or ``callback``; empty if nothing is being done.
    :param stages: indexes of the stages that the step works on.
    """

    step: str = ""
    stages: tuple[int, ...] = ()


def job_progress(result: JobResult, plan: Plan, *, is_promoted: bool = True) -> JobProgress:
    """Return the progress of one job from what it has left in the control topic.

    :param plan: names the stages, which are the task groups of the run.
    :param is_promoted: whether a bridge has begun to copy; before the promotion it has a position but no work.
    """
    step, _, stage = result.job.partition("/")
    groups = plan.stages if step in IN_GROUPS else ()
    group = next((f"{s.name}." for s in groups if stage == str(s.index)), "")
    waits = step == BRIDGE and not is_promoted
    measured = () if waits else result.partitions
    total = sum(p.end for p in measured) if measured else None
    lag = sum(p.left for p in measured) if measured else None
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
        eta_seconds=result.lags.seconds_left() if result.state in AT_WORK and not waits else None,
        has_pace=result.lags.has_pace and not waits,
        detail="waits for the promotion" if waits and result.state in AT_WORK else result.detail,
    )


def _share(state: str, copied: int | None, total: int | None) -> float | None:
    if state == "done":
        return 1.0
    if copied is None or total is None:
        return None
    return copied / total if total else 1.0


def in_order(results: Iterable[JobResult]) -> list[JobResult]:
    """Return the results of a run's jobs in its order: stage by stage, then the jobs of all stages."""
    return sorted((r for r in results if r.job.partition("/")[0] in ORDER), key=_place)


def work_of(control: ControlState) -> Work:
    """Return what an expansion is doing. The journal's phase tells it; while warming, the newest jobs do."""
    journal = control.journal
    if journal is None or not journal.in_progress:
        return Work()
    everything = tuple(s.index for s in journal.plan.stages)
    if journal.phase is not Phase.WARMING:
        is_moving = journal.phase is Phase.PROMOTED and journal.plan.is_in_place and not journal.green_start
        return Work(step="move" if is_moving else STEPS[journal.phase], stages=everything)
    jobs = [r for r in in_order(control.results.values()) if r.job != BRIDGE]
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
