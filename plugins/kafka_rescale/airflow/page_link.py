"""The link from a task's page to the page of its application."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

from kafka_rescale.airflow.page_path import page_path

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ApplicationPageLink(BaseOperatorLink):
    """A link to the application that a task's operator names, or else its DAG id ``<kind>_<application>``."""

    name = "Application"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address."""
        return page_path(_application_of(operator) or ti_key.dag_id.partition("_")[2])


def _application_of(operator: BaseOperator) -> str:
    """Return the application that an operator names, itself or by its file; empty if it names none."""
    from kafka_rescale.operations.application.load import fields_of

    named = getattr(operator, "application_id", None) or getattr(operator, "cutover_of", None)
    file = getattr(operator, "application_file", None)
    if named or not file:
        return str(named or "")
    try:
        return str(fields_of(Path(file)).get("application_id") or "")
    except Exception:  # Whatever is wrong with the file, no task may end for its link.
        return ""
