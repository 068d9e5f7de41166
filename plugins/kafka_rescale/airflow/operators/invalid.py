"""The task of a DAG that stands for an application file that can't be used."""

from __future__ import annotations

from typing import Any, NoReturn

from airflow.sdk import BaseOperator, Context

from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.core.errors import InvalidInput


class InvalidApplicationOperator(BaseOperator):
    """
    Fail with what is wrong with an application file.

    :param application_file: path of the file
    :param error: why it can't be used
    """

    ui_color = "#e2a0a0"

    def __init__(self, *, application_file: str, error: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        set_retry_policy(self)
        self.application_file = application_file
        self.error = error

    def execute(self, context: Context) -> NoReturn:
        """Raise the error that parsing found."""
        raise InvalidInput(
            f"application file {self.application_file}",
            found=self.error,
            expected="a file that can be used",
            remedy="Check it with `python -m kafka_rescale validate FILE`.",
        )
