"""Notices about an expansion to people: one per event, each with the next step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from kafka_rescale.core.application.notifications import Event
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.core.expansion.downtime import TOTAL, parts_of
from kafka_rescale.core.plan.not_copied import told_not_copied

_FIGURES = re.compile(r"\w*\d\w*")

STATUS = "python -m kafka_rescale status FILE"


@dataclass(frozen=True)
class Notice:
    """One message, in the parts that the template of a notifier may use as ``rescale.<part>``.

    :param application: base name.
    :param subject: one line.
    :param message: what has happened; several lines.
    :param next_step: what the reader has to do; one sentence or more.
    :param run: ``<dag_id>/<run_id>``.
    :param url: address of the application's page; empty if Airflow doesn't know its own address.
    """

    event: Event
    application: str
    subject: str
    message: str
    next_step: str
    run: str = ""
    url: str = ""

    @property
    def text(self) -> str:
        """The whole notice, for a notifier that takes one text."""
        where = (f"Run: {self.run}" if self.run else "", self.url)
        return "\n".join(filter(None, (self.subject, "", self.message, "", f"Next: {self.next_step}", *where)))

    def fields(self) -> dict[str, str]:
        """Return the parts by their names, and ``text``."""
        return {**{name: str(value) for name, value in asdict(self).items()}, "text": self.text}


def approval(application: str, subject: str, body: str) -> Notice:
    """Tell that a run waits for an answer.

    :param body: the text for the person who is asked, in Markdown.
    """
    next_step = "Answer in Airflow under Required Actions; without an answer in time the run fails and rolls back."
    return Notice(Event.APPROVAL, application, f"Approval wanted: {subject}", body, next_step)


def complete(
    application: str,
    green: str,
    timings: Mapping[str, float],
    copies: Mapping[str, str] | None = None,
    not_copied: Sequence[str] = (),
    accepted: int = 0,
) -> Notice:
    """Tell that an expansion is verified and has ended.

    :param green: ``application.id`` that runs now.
    :param timings: seconds per part of the downtime.
    :param copies: what the jobs that began with a snapshot have read.
    :param not_copied: names of the stores without a changelog.
    :param accepted: how many findings a person has accepted.
    """
    lines = [f"  {part.meaning}: {part.seconds:.1f} s" for part in parts_of(timings)]
    lines += [f"{job}: {detail}" for job, detail in (copies or {}).items()]
    total = f"{timings[TOTAL]:.1f} s" if TOTAL in timings else "not measured"
    verified = f"{green} runs, and {_verified(not_copied, accepted)}"
    message = "\n".join((verified, f"Downtime: {total}", *lines))
    next_step = f"Nothing has to be done. retire_{application} deletes what earlier generations have left."
    return Notice(Event.COMPLETE, application, f"Expansion of {application} is complete", message, next_step)


def _verified(not_copied: Sequence[str], accepted: int) -> str:
    told = "its whole state was verified."
    if not_copied:
        told = f"all that was copied was verified. {told_not_copied(not_copied)}."
    findings = "1 finding" if accepted == 1 else f"{accepted} findings"
    return f"{told} A person had accepted {findings}, which `{STATUS}` names." if accepted else told


def failed(application: str, task: str, error: object) -> Notice:
    """Tell that a task has failed for good.

    :param error: the exception; None if its process is gone without one.
    """
    return Notice(Event.FAILED, application, f"{application}: task {task} has failed", *_cause(application, error))


def failure_kind(task: str, error: object) -> str:
    """Return what failures have in common that need one notice, not one each: the task, and the error.

    Of an outage, figures don't count: they say how long it was waited for. What is refused is another thing with
    another figure. Other errors than those of this project have no text that stays the same: they name files, or
    whole commands.

    :param error: the exception; None if its process is gone without one.
    """
    text = str(error) if isinstance(error, RescaleError) else ""
    if isinstance(error, Outage):
        text = _FIGURES.sub("#", text)
    return f"{task}: {type(error).__name__ if error is not None else 'killed'}: {text}".removesuffix(": ")


def rolled_back(application: str, done: str) -> Notice:
    """Tell that the running generation goes on as it was.

    :param done: what the rollback did, in a sentence.
    """
    next_step = (
        f"Mend what had failed, then trigger expand_{application} again: it goes on with the copies there are."
    )
    return Notice(Event.ROLLED_BACK, application, f"Expansion of {application} was rolled back", done, next_step)


def autoscaling_failed(application: str, task: str, error: object) -> Notice:
    """Tell that the watch has an error, or could not be run."""
    subject = f"Autoscaling of {application}: task {task} has failed"
    return Notice(Event.AUTOSCALING, application, subject, *_cause(application, error))


def gave_up(application: str, reason: str) -> Notice:
    """Tell that the watch has given up trying.

    :param reason: why it has decided so.
    """
    next_step = f"Look at the last failed run of expand_{application}, mend that, and trigger it with the target."
    return Notice(Event.AUTOSCALING, application, f"Autoscaling of {application} has given up", reason, next_step)


def long_pause(application: str, seconds: float, phase: str, limit_seconds: float) -> Notice:
    """Tell that the pause of an application lasts longer than declared.

    :param seconds: how long it has lasted so far.
    :param phase: phase of the journal.
    :param limit_seconds: the declared limit.
    """
    subject = f"The pause of {application} has lasted {seconds:.0f} s, longer than {limit_seconds:.0f} s"
    message = f"Phase {phase}. `{STATUS}` shows how it goes on."
    return Notice(Event.LONG_PAUSE, application, subject, message, _way_on(application, phase))


def skipped(application: str, told: str) -> Notice:
    """Tell that a run of the schedule did not happen.

    :param told: why, in sentences.
    """
    next_step = (
        f"If {application} shall be expanded now, trigger expand_{application}. If this comes with each run, see "
        "what keeps the runs of this DAG from beginning in time."
    )
    return Notice(
        Event.SKIPPED, application, f"Scheduled expansion of {application} did not happen", told, next_step
    )


def _way_on(application: str, phase: str) -> str:
    if phase == Phase.PROMOTED:
        return (
            "Only forward: if the task isn't at work, clear it; if the next generation doesn't start, see its log."
        )
    if phase == Phase.ROLLING_BACK:
        return "The old generation is being started. If the task isn't at work, clear it."
    return f"If the task isn't at work, trigger rollback_{application}: it starts the old generation again."


def _cause(application: str, error: object) -> tuple[str, str]:
    """Return what has happened, and what to do."""
    if error is None:
        return (
            "Its process ended without a word: it was killed, or its machine is gone.",
            f"`{STATUS}` shows the phase, and with it which way is open.",
        )
    if isinstance(error, RescaleError):
        # The text has all findings, each with its remedy.
        return str(error), error.remedy
    return f"{type(error).__name__}: {error}", f"See the task's log; `{STATUS}` shows which way is open."
