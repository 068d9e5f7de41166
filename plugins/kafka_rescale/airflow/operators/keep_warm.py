"""The tasks that keep the standbys and warm-ups of a pipeline warm."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.client_job import ClientJobOperator
from kafka_rescale.airflow.runs import is_queued, noted_before

if TYPE_CHECKING:
    from kafka_rescale.core.processing.request import ClientRequest


class StandbysOperator(RescaleOperator):
    """Find the clients of a pipeline whose standbys and warm-ups have something to read."""

    operator_extra_links = ()

    def execute(self, context: Context) -> list[str]:
        """Return the ids of the clients."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.keep_warm import due_clients

        application = load_pipeline_application(self.application_file)
        return due_clients(application, self.connection(application))


class KeepWarmOperator(ClientJobOperator):
    """Let the standbys and warm-ups of one client read what was written to the changelogs."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(job="keep_warm", **kwargs)

    @cached_property
    def _request(self) -> ClientRequest:
        from kafka_rescale.core.processing.request import KeepWarmRequest

        return KeepWarmRequest.of(self._application, self.client)


class ProbeOperator(RescaleOperator, SkipMixin):
    """
    Check whether a warm-up makes a rebalance due. If not, skip the tasks behind this one.

    Behind a run of hours, or while the DAG is paused, not every interval adds another run. Other runs that are
    queued don't count: they may be those of a backfill, which can wait for weeks and assigns nothing of the
    generation at work. Airflow does not tell a task which they are.
    """

    inherits_from_skipmixin = True
    operator_extra_links = ()

    def execute(self, context: Context) -> str:
        """Return the id of the run to trigger. Within one interval it is always the same."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.keep_warm import probe

        application = load_pipeline_application(self.application_file)
        found = probe(application, self.connection(application))
        self.log.info("%s", found.reason)
        run_id = found.run_id
        # A task that skips returns nothing, and the ids have times of one length: this is the last run triggered.
        last = max(noted_before(context), default="") if run_id else ""
        if last and is_queued(f"process_{application.application_id}/{last}"):
            self.log.info("Run %s of process_%s is queued, and will rebalance.", last, application.application_id)
            run_id = ""
        if not run_id:
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return run_id
