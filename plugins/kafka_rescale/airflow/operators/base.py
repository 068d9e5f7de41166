"""The base of the operators: it has the application file, its connection, and the owner of the lease."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import airflow_of, owner_of
from kafka_rescale.core.roles import Role

if TYPE_CHECKING:
    from kafka_rescale.core.application.common import ApplicationFile
    from kafka_rescale.core.application.streams import Application
    from kafka_rescale.kafka.client.connection import KafkaConnection


class RescaleOperator(BaseOperator):
    """
    Base of the admin steps: loads the application and finds its connection.

    :param application_file: path of the application file, read again when the task runs (templated)
    """

    template_fields: Sequence[str] = ("application_file",)
    ui_color = "#dbe7f5"
    role = Role.ADMIN
    operator_extra_links: tuple[ApplicationPageLink, ...] = (ApplicationPageLink(),)

    def __init__(self, *, application_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        set_retry_policy(self)
        self.application_file = application_file

    def application(self) -> Application:
        """Return the application as its file describes it now."""
        from kafka_rescale.operations.application.load import load_application

        return load_application(self.application_file)

    def connection(self, application: ApplicationFile, role: Role | None = None) -> KafkaConnection:
        """Return the application's Kafka connection for a role. The default is the role of this task."""
        return KafkaRescaleHook(kafka_config_id=application.kafka_conn_id_of(role or self.role)).connection()

    def run_owned(self, step: Callable[..., Any], context: Context, **arguments: Any) -> Any:
        """Call a step with the application, its connection, and the owner of the lease with its Airflow."""
        application = self.application()
        owner = {"owner": owner_of(context), "airflow": airflow_of(context)}
        result = step(application, self.connection(application), **owner, **arguments)
        self.log.info("%s", result)
        return result
