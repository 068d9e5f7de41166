"""The last resort of a run: a person may have marked it while no generation ran.

A mark kills the tasks of a run within seconds, and takes all tries from them. The process of a killed ``cutover``
may still be at work meanwhile. That does no harm: a rollback and a second cutover may begin beside it at any time,
as after a worker that was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.lost_records import lost_perhaps
from kafka_rescale.core.plan.instances import green
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.cutover.persistence import insist, state_of_pause
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.modes.choice import mode_of

MARKED = "a person who has marked its run, or by Airflow"
"""What has ended an attempt that no earlier task of its run has rolled back. Autoscaling then asks."""


@dataclass(frozen=True)
class Ensured:
    """The result of a look at what a run has left.

    :param has_acted: whether perhaps no generation ran, or an attempt was open that no task would end.
    :param told: a sentence that says what was done, or how the expansion stands.
    """

    has_acted: bool
    told: str

    def __str__(self) -> str:
        return self.told


def ensure_running(
    application: Application, connection: KafkaConnection, *, owner: str, reason: str, airflow: str = ""
) -> Ensured:
    """Roll back what this run has left open before its promotion; start green if it is promoted and not started.

    While the brokers don't answer, this tries again and again; only the end of the process stops it.

    :param owner: the run that has ended; without its lease nothing is changed.
    :param reason: why the attempt is rolled back, for the journal.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :raises UnsafeState: topics that have grown in place wait for the job ``move``, which has to be cleared.
    :raises Exception: what went wrong; then perhaps no generation runs.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    state = _read(rescale)
    journal = _left(rescale, state)
    if journal is not None and not journal.is_promoted:
        # Also in ``warming``: a cutover that is about to be killed may stop the application a moment later.
        done = roll_back(
            application,
            connection,
            owner=owner,
            reason=reason,
            stopped_by=MARKED,
            airflow=airflow,
            attempt=journal,
        )
        if done.is_done and not done.was_done_before:
            return Ensured(True, done.told)
        # It was promoted in this moment, or another run has gone on.
        state = _read(rescale)
        journal = _left(rescale, state)
    if journal is None or not journal.is_promoted:
        return Ensured(False, _stand(application.application_id, state))
    return _forward(rescale, journal)


def _forward(rescale: Rescale, journal: Journal) -> Ensured:
    plan = journal.plan
    if "move" in mode_of(plan).jobs_behind(plan) and not journal.green_start:
        if rescale.lifecycle.is_running(green(plan)):
            raise UnsafeState(
                f"application {plan.application}",
                found="a running instance, although its topics have to grow first",
                expected="an application that is stopped until then",
                remedy="Something else has started it. Do what the log of the task cutover says first.",
            )
        # Waiting for that job, which was killed as well, would only keep the person from hearing of it.
        raise UnsafeState(
            f"application {plan.application}",
            found="the end of its run behind the promotion, while it is stopped and its topics grow",
            expected="the tasks move and cutover at work",
            remedy="NOBODY PROCESSES ITS INPUTS. Clear move and cutover with their downstream tasks NOW, or "
            "trigger the expansion again.",
        )
    run_cutover(rescale.application, rescale.connection, owner=rescale.owner, airflow=rescale.airflow)
    return Ensured(True, f"{plan.green} was started; clear verify with its downstream tasks, or trigger again")


def _read(rescale: Rescale) -> ControlState:
    waiting = "an answer of the control topic, which says whether the application was left stopped"
    return insist(rescale.control.read, lambda: state_of_pause(rescale.application.application_id, None, waiting))


def _left(rescale: Rescale, state: ControlState) -> Journal | None:
    """Return the journal of an attempt of this run in which no generation runs, or may not run a moment later."""
    journal, held = state.journal, state.lease
    if journal is None or held is None or not held.is_of(rescale.owner, rescale.airflow):
        return None
    is_left = journal.in_progress and (journal.is_paused or not journal.is_promoted)
    return journal if is_left else None


def _stand(application: str, state: ControlState) -> str:
    journal = state.journal
    if journal is None:
        return f"Nothing to do: no expansion has begun; {lost_perhaps(application)}"
    return f"Nothing to do: the expansion is in phase {journal.told}"
