"""The tasks of a pipeline's run: the assignment, and one ``spark-submit`` for each stream thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from kafka_rescale.airflow.backfills import generation_of
from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.markdown import assignment_markdown
from kafka_rescale.airflow.metrics import report, report_failed_threads
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.operators.stuck_job import EndWhenStuck
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.spark.kafka_for_spark import require_kafka_for_spark
from kafka_rescale.core.assignment.picture import svg
from kafka_rescale.core.assignment.stream_threads import client_of
from kafka_rescale.core.errors import Fenced, RescaleError, UnsafeState
from kafka_rescale.core.job_requests import as_argument
from kafka_rescale.core.roles import Role

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication
    from kafka_rescale.core.control.processing import Processing
    from kafka_rescale.core.processing.request import ProcessRequest
    from kafka_rescale.kafka.client.connection import KafkaConnection
    from kafka_rescale.operations.processing.dead_threads import Attempt


class AssignOperator(RescaleOperator):
    """
    Create the missing internal topics of a pipeline, and assign each of its tasks to a stream thread.

    First the operator does what the trigger form asks for: it adds and removes threads, gives up clients or starts
    them again, and adds processors.
    """

    operator_extra_links = ()

    def execute(self, context: Context) -> list[str]:
        """Return the names of the threads that have tasks in this run."""
        from kafka_rescale.core.pipeline.named import pipeline_named
        from kafka_rescale.core.processing.adjustments import Adjustments
        from kafka_rescale.core.processing.late_records import late_hints
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.prepare import prepare

        declared = load_pipeline_application(self.application_file)
        spark = [(of.spark_conn_id or declared.spark_conn_id, of.spark_conf) for of in declared.members]
        if hint := require_kafka_for_spark(declared, {Role.COPY: self.connection(declared, Role.COPY)}, spark):
            self.log.warning("%s", hint)
        application, backfill = generation_of(declared, context)
        asked = Adjustments.of(context["params"])
        prepared = prepare(application, self.connection(application), owner_of(context), asked, backfill)
        processing = prepared.processing
        self.log.info("%s", prepared)
        if application.clients:
            self.log.info("\n%s", assignment_markdown(processing))
            context["ti"].xcom_push(key="picture", value=svg(processing.assignment))
        report_failed_threads(processing)
        for client in processing.clients:
            if client.put_out:
                self.log.warning("%s: %s; see start-client", client.client_id, client.put_out)
        for lack in processing.assignment.told_missing(application.num_standby_replicas):
            self.log.warning("%s", lack)
        pipeline = pipeline_named(application.pipeline)
        for hint in late_hints(pipeline.topology, pipeline.sub_topologies(), processing.tasks):
            self.log.warning("%s", hint)
        if backfill is None:
            report(application, prepared.scaled.parallelism, prepared.scaled.record)
        if prepared.scaled.warns:
            self.log.warning("%s", "; ".join(prepared.scaled.messages))
        return list(processing.running)


class PipelineCallbackOperator(RescaleOperator):
    """Call `on_partition_expansion` once every sub-topology of a pipeline has grown with its inputs (KIP-878)."""

    operator_extra_links = ()

    def execute(self, context: Context) -> str:
        """Return what was done."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.autoscaling import call_back

        application = load_pipeline_application(self.application_file)
        if generation_of(application, context)[1] is not None:
            return "a backfill grows nothing"
        return call_back(application, self.connection(application))


class ProcessOperator(RescaleSparkSubmitOperator):
    """
    Run the tasks of one stream thread at one level of a pipeline, if there is anything to read.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param level: number of the level; level 1 has the sub-topologies that no other sub-topology feeds
    :param thread: name of the stream thread (templated)
    """

    template_fields: Sequence[str] = (*RescaleSparkSubmitOperator.template_fields, "application_file", "thread")
    operator_extra_links: tuple[Any, ...] = ()

    def __init__(self, *, application_file: str, level: int, thread: str, **kwargs: Any) -> None:
        self._stands_for = ""
        self.application_file = application_file
        self.level = level
        self.thread = thread
        super().__init__(job="process", **kwargs)

    @cached_property
    def _declared(self) -> PipelineApplication:
        """The application, as its file describes it when the task begins.

        The file is loaded once, so that an edit during the task can't make parts of the task disagree.
        """
        from kafka_rescale.operations.application.load import load_pipeline_application

        return load_pipeline_application(self.application_file)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        from kafka_rescale.core.processing.late_records import told_dropped
        from kafka_rescale.operations.processing.dead_threads import take_over
        from kafka_rescale.operations.processing.prepare import is_idle

        application, _ = generation_of(self._declared, context)
        self.application_id = application.application_id
        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        processing = take_over(application, connection, self._attempt(context))
        if processing is not None:
            self._stands_for = alive(processing, self.thread)
        request = self._request(context)
        self.result_key = request.key
        if is_idle(application, connection, owner_of(context), request):
            self.log.info("There is nothing to read: every record has been processed.")
            return {}
        self._runs_on(application.member_of(request.thread))
        result = super().execute(context)
        if told := told_dropped(result.get("dropped", 0)):
            self.log.warning("%s", told)
        return result

    def _submit(self, connection: KafkaConnection, context: Context) -> None:
        from kafka_rescale.operations.processing.dead_threads import handle_failure
        from kafka_rescale.operations.processing.thread_watch import ThreadWatch

        application, _ = generation_of(self._declared, context)
        attempt, limit = self._attempt(context), application.max_poll_interval_ms / 1000
        now_called = replace(attempt, thread=self._request(context).thread)
        watch = ThreadWatch(connection, application.application_id, now_called, limit)
        try:
            with EndWhenStuck(watch.look, watch.pause_seconds, self.on_kill):
                super()._submit(connection, context)
        except Fenced:
            raise
        except (AirflowException, RescaleError) as error:
            processing = handle_failure(application, connection, attempt, error)
            if processing is not None:
                report_failed_threads(processing)
                alive(processing, self.thread, error)
            raise

    def _attempt(self, context: Context) -> Attempt:
        from kafka_rescale.operations.processing.dead_threads import Attempt

        job = self._request(context).key
        instance = context["ti"]
        return Attempt(
            run=owner_of(context),
            job=job,
            thread=self.thread,
            number=instance.try_number,
            is_last=instance.try_number > instance.max_tries,
        )

    def _request(self, context: Context) -> ProcessRequest:
        from kafka_rescale.core.processing.request import ProcessRequest

        application, backfill = generation_of(self._declared, context)
        thread = self._stands_for or self.thread
        began_as = self.thread if thread != self.thread else ""
        return ProcessRequest.of(application, thread, self.level, began_as=began_as, backfill=backfill)

    def _arguments(self, context: Context) -> list[str]:
        return [*super()._arguments(context), "--request", as_argument(self._request(context))]


def alive(processing: Processing, thread: str, cause: Exception | None = None) -> str:
    """Return the thread that now does the work of a thread: the thread itself, or its replacement.

    :param thread: The name of the thread.
    :param cause: The error that the thread died of, if it is known.
    :raises UnsafeState: The thread died, and the handler decided that no other thread replaces it.
    """
    name = processing.thread_for(thread)
    if name in {each.name for each in processing.threads}:
        return name
    client = client_of(thread)
    record = processing.client(client)
    is_out = record is not None and bool(record.put_out)
    why = (
        "Its client was put out"
        if is_out
        else "The handler (uncaught.exception.handler) decided not to replace it"
    )
    what = "Mend the client's Spark" if is_out else "See the thread's log"
    raise UnsafeState(
        f"stream thread {thread}",
        found=f"its death{f' ({cause})' if cause else ''}; its client is {record.state if record else 'gone'}",
        expected="a thread that replaces it",
        remedy=f"{why}. {what}, then start the client again: start-client FILE --client {client}. Until then "
        "other clients have its tasks, from the next run on.",
    ) from cause
