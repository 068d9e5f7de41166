"""What the fields of an application file have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.application.secrets import address_with_secret
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.topic_names import SAID, TOPIC_NAME, is_topic_name

# Schedules that Airflow accepts. They are checked when a file is read: later they would fail all its DAGs.
PRESETS = frozenset({"@once", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"})
CONTINUOUS = "@continuous"


def checked_schedule(value: str | None) -> str | None:
    """Return a cron expression or preset.

    :raises WrongValue: the value is neither of them, or ``@continuous``. Airflow takes that only for a DAG with
        one run at a time.
    """
    if value is None or value in PRESETS or _is_cron(value):
        return value
    raise WrongValue(
        found=repr(value) + (", which only `schedule` of a pipeline may be" if value == CONTINUOUS else ""),
        expected="a cron expression such as `0 3 * * sun`, or a preset such as @weekly",
        remedy="Correct it.",
    )


def checked_pipeline_schedule(value: str | None) -> str | None:
    """Return a cron expression or preset, which may be ``@continuous``.

    :raises WrongValue: the value is neither of them.
    """
    return value if value == CONTINUOUS else checked_schedule(value)


def _is_cron(value: str) -> bool:
    try:
        from croniter import croniter
    except ImportError:
        return True  # croniter comes with Airflow. Drivers of Spark jobs read the file, but not the schedule.
    return bool(croniter.is_valid(value))


def checked_patterns(value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return topics by pattern.

    :raises WrongValue: a pattern is no regular expression in Python, though it may be one in Java.
    """
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise WrongValue(
                found=f"{pattern!r}: {error}",
                expected="a regular expression that Java and Python read alike",
                remedy="Name the topics in the program instead.",
            ) from None
    return value


def _named(value: str) -> str:
    if not is_topic_name(value):
        raise WrongValue(found=repr(value), expected=SAID, remedy="Correct the value.")
    return value


Name = Annotated[str, Field(pattern=TOPIC_NAME), AfterValidator(_named)]
ApplicationId = Annotated[str, Field(pattern=TOPIC_NAME, max_length=240), AfterValidator(_named)]
"""Airflow's ids have at most 250 characters; the longest id with an application's id in it is ``keep_warm_…``."""
ChainName = Annotated[str, Field(pattern=TOPIC_NAME, max_length=237), AfterValidator(_named)]
"""As above, with ``expand_chain_…``."""
COMMAND_SECONDS = 120
"""How long a command of the file may take by default."""
WholeNumber = Annotated[int, Field(strict=True)]
"""Strict, because pydantic would convert other values: `partitions: true` would shrink a topic to 1."""
PartitionCount = Annotated[WholeNumber, Field(ge=1, le=100_000)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt field must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(value: str, lookup: Callable[[str], object]) -> str:
    """Return the value.

    :raises WrongValue: the lookup fails. Its complaint becomes the complaint about the field.
    """
    try:
        lookup(value)
    except InvalidInput as error:
        raise WrongValue.of(error.complaint) from None
    return value


def place(value: str) -> str:
    """Return where files are to go: an absolute path, or a URI that Arrow can write to.

    :raises WrongValue: it is relative, or has credentials in it.
    """
    if found := address_with_secret(value):
        raise WrongValue(
            found=found,
            expected="no credentials in a URI: it would show in command lines and manifests",
            remedy="Give them to the environment of Spark's executors.",
        )
    if not value.startswith("/") and not urlsplit(value).scheme:
        raise WrongValue(
            found=repr(value),
            expected="an absolute path or a URI such as s3://bucket/state",
            remedy="Executors and Airflow run in directories of their own.",
        )
    return value.rstrip("/")
