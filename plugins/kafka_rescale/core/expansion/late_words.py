"""A person's word that a task says late counts only for what that person could know.

A run may wait for weeks on a paused DAG. Airflow repeats the task of a killed worker minutes later, and a cleared
task at any time. Meanwhile another attempt may have begun, or another person may have said the contrary.
"""

from __future__ import annotations

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.pace import Instruction
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.switch_wait import utc

CLOCK_SKEW_MS = 60_000
"""How far the clocks of a worker and of Airflow's API server may differ."""


def begun_since(journal: Journal, asked_ms: int | None) -> str:
    """Return that the attempt has begun since a person asked for something; empty if the person could mean it.

    :param asked_ms: when the person asked, in ms since the epoch; None for now.
    """
    # Two machines have taken these times. While the application may be down, no difference of clocks shall keep a
    # person from starting it again.
    may_be_down = journal.in_progress and not journal.is_promoted and journal.pause_started_ms > 0
    slack = CLOCK_SKEW_MS if may_be_down else 0
    if asked_ms is None or journal.begun_ms <= asked_ms + slack:
        return ""
    begun = f"attempt {journal.attempt}, which began {utc(journal.begun_ms)}"
    return f"{begun}, after this was asked for at {utc(asked_ms)}"


def assert_about(what: str, journal: Journal, asked_ms: int | None) -> None:
    """Check that a person could mean the present attempt.

    :param what: what the person asks for, for the error.
    :param asked_ms: when the person asked, in ms since the epoch; None for now.
    :raises Refused: the attempt has begun since.
    """
    if found := begun_since(journal, asked_ms):
        raise _late(what, found, "the attempt that was meant")


def assert_last(what: str, by: str, asked_ms: int | None, last: Instruction | Switch) -> None:
    """Check that no other person has spoken since a person asked for something.

    :param what: what the person asks for, for the error.
    :param by: the person, with the run.
    :param asked_ms: when the person asked, in ms since the epoch; None for now.
    :param last: the last word; its ``by`` is empty if nobody has spoken. When it was asked for counts: when it was
        noted depends on its task.
    :raises Refused: another person has.
    """
    last_ms = last.asked_for_ms or last.at_ms
    if asked_ms is not None and last.by not in {"", by} and last_ms > asked_ms:
        found = f"a word of {last.by} at {utc(last_ms)}, after this was asked for at {utc(asked_ms)}"
        raise _late(what, found, "no later word, because the last one counts")


def _late(what: str, found: str, expected: str) -> Refused:
    remedy = "Nothing has been changed. If it is still wanted, trigger it again."
    return Refused(what, found=found, expected=expected, remedy=remedy)
