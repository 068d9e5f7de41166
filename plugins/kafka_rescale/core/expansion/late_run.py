"""A run of a schedule that begins long after its time: nobody has decided that the application is expanded now.

Even with ``catchup=False``, Airflow begins the run of the last tick as soon as a DAG is unpaused, its schedule has
changed, or Airflow is back. Such a run asks no person, and could stop the application at any hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

LATE = timedelta(hours=1)
ONCE = "@once"
TOLD_AGAIN = timedelta(days=1)
"""If one run after another is late, as while workers are short, the cause is one: people are told once in it."""


def is_news(now: datetime, told: Sequence[str]) -> bool:
    """Return whether people are told of a late run: they were told of none within the last day.

    :param told: when they were told of earlier runs, in ISO 8601 with the time zone, in any order.
    """
    return all(now - datetime.fromisoformat(at) >= TOLD_AGAIN for at in told)


def remark_on_late_run(schedule: str | None, due: datetime, now: datetime) -> str:
    """Return why a run of a schedule is skipped, and what to do; empty if it may begin.

    :param schedule: the schedule of the application file. The run of ``@once`` is never late: Airflow dates it at
        the start date of the DAG, and it is due when the DAG is unpaused.
    :param due: when the schedule wanted the run.
    """
    if schedule == ONCE or now - due <= LATE:
        return ""
    hours, wanted = (now - due) / timedelta(hours=1), f"{due:%Y-%m-%d %H:%M %Z}"
    return (
        f"This run is skipped, and nothing is touched: the schedule wanted it at {wanted}, {hours:.1f} h ago, and "
        "says nothing about an expansion now. Airflow begins such a run when the DAG is unpaused, when its "
        "schedule has changed, or when Airflow has been away. To expand now, trigger the DAG, or clear this run. "
        "Otherwise the next run of the schedule begins at its time."
    )
