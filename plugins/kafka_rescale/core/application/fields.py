"""What the fields of an application file have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.topic_names import SAID, TOPIC_NAME, is_topic_name

# What Airflow takes for a schedule, asked when a file is read: later it would fail a file's worth of DAGs.
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


def checked_patterns(value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return topics by pattern.

    :raises ValueError: a pattern is no regular expression here, though it may be one in Java.
    """
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"found {pattern!r}: {error}; expected a regular expression that Java and Python read alike. Name "
                "the topics in the program instead."
            ) from None
    return value


def _named(value: str) -> str:
    if not is_topic_name(value):
        raise ValueError(f"found {value!r}; expected {SAID}. Correct the value.")
    return value


Name = Annotated[str, Field(pattern=TOPIC_NAME), AfterValidator(_named)]
ApplicationId = Annotated[str, Field(pattern=TOPIC_NAME, max_length=240), AfterValidator(_named)]
"""Airflow's ids have 250 characters, and the longest that has an application's id in it is ``keep_warm_…``."""
ChainName = Annotated[str, Field(pattern=TOPIC_NAME, max_length=237), AfterValidator(_named)]
"""As above, with ``expand_chain_…``."""
COMMAND_SECONDS = 120
"""How long a command of the file may take, if it says nothing else."""
WholeNumber = Annotated[int, Field(strict=True)]
"""Not what pydantic would make one of: `partitions: true` would be a shrink to one."""
PartitionCount = Annotated[WholeNumber, Field(ge=1, le=100_000)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt field must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(value: str, lookup: Callable[[str], object]) -> str:
    """Return the value if it can be looked up; else the error's text becomes a message about the field."""
    try:
        lookup(value)
    except InvalidInput as error:
        raise ValueError(f"found {error.found}; expected {error.expected}. {error.remedy}") from None
    return value


def place(value: str) -> str:
    """Return where files are to go: an absolute path, or a URI that Arrow can write to.

    :raises ValueError: it is relative, or has a password in it.
    """
    parts = urlsplit(value)
    if not value.startswith("/") and not parts.scheme:
        raise ValueError(
            f"found {value!r}; expected an absolute path or a URI such as s3://bucket/state. "
            "Executors and Airflow run in directories of their own."
        )
    if parts.password is not None:
        raise ValueError(
            "found a password in a URI; expected none: it would show in command lines and manifests. "
            "Give the credentials to the environment of Spark's executors."
        )
    return value.rstrip("/")
