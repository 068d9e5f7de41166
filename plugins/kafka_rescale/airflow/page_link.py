"""The link from a task's page to the page of its application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

from kafka_rescale.airflow.page_path import page_path

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ApplicationPageLink(BaseOperatorLink):
    """A link to the application of a task. The DAG id ``<kind>_<application>`` names the application."""

    name = "Application"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address."""
        return page_path(ti_key.dag_id.partition("_")[2])
