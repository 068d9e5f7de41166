"""The way from a task's page to the page of its application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

from kafka_rescale.airflow.page_path import page_path

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ApplicationPageLink(BaseOperatorLink):
    """Leads to the application that a task's DAG is about: ``<kind>_<application>``."""

    name = "Application"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address."""
        return page_path(ti_key.dag_id.partition("_")[2])
