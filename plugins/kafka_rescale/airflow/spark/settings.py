"""The Spark settings of an application file, as arguments of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import literal


def unrendered(conf: Mapping[str, str]) -> dict[str, Any]:
    """Return settings in which Airflow replaces nothing.

    Spark has placeholders of its own, such as ``{{APP_ID}}``. Airflow would take them for templates, and fail.
    """
    return {name: literal(value) if "{" in value else value for name, value in conf.items()}
