"""Operators that give a pipeline more processors (KIP-287)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.backfills import generation_of
from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.client_job import ClientJobOperator

if TYPE_CHECKING:
    from kafka_rescale.core.processing.request import ClientRequest


class ExpandProcessorsOperator(RescaleOperator):
    """
    Ask for more processors for a pipeline. They warm up from the next run on.

    :param processors: wanted number of processors of each sub-topology (templated)
    :param sub_topologies: numbers of the sub-topologies; empty means all of them
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "processors")
    operator_extra_links = ()

    def __init__(self, *, processors: int | str, sub_topologies: Sequence[int] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.processors = processors
        self.sub_topologies = sub_topologies

    def execute(self, context: Context) -> dict[str, int]:
        """Return how many processors each sub-topology has now. The new processors count from a later run on."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.processors import expand_processors

        application = load_pipeline_application(self.application_file)
        connection = self.connection(application)
        known = expand_processors(application, connection, int(self.processors), self.sub_topologies)
        self.log.info("%s", known)
        return {str(number): count for number, count in known.tasks.items()}


class WarmUpProcessorsOperator(ClientJobOperator):
    """Warm up the new processors that split the tasks of one client, if there are any, while the old ones work."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(job="warm_up_processors", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        from kafka_rescale.operations.processing.processors import is_split

        application, _ = generation_of(self._application, context)
        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        if not is_split(application.application_id, connection, self.client):
            self.log.info("No processor is being added.")
            return {}
        return super().execute(context)

    @cached_property
    def _request(self) -> ClientRequest:
        from kafka_rescale.core.processing.request import WarmUpRequest

        return WarmUpRequest.of(self._application, self.client, follows=True)
