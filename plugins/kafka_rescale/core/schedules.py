"""What Airflow takes for a schedule, asked when a file is read: later it would fail a file's worth of DAGs."""

from __future__ import annotations

PRESETS = frozenset({"@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"})


def checked_schedule(value: str | None) -> str | None:
    """Return a cron expression or preset.

    :raises ValueError: it is neither.
    """
    if value is None or value in PRESETS or _is_cron(value):
        return value
    raise ValueError(
        f"found {value!r}; expected a cron expression such as `0 3 * * sun`, or a preset such as @weekly. "
        "Correct it."
    )


def _is_cron(value: str) -> bool:
    try:
        from croniter import croniter
    except ImportError:
        return True  # It comes with Airflow. Drivers of Spark jobs read the file, too, and start nothing by it.
    return bool(croniter.is_valid(value))
