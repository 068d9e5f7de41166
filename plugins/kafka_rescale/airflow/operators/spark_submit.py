"""Submit one of this project's Spark jobs, and return its result."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.lag_gate import journal_of
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.spark.connection import deploy_mode_of, names_resource_manager, require_spark_master
from kafka_rescale.airflow.spark.cores import fitting
from kafka_rescale.airflow.spark.job_results import failure_of, report_as_of, result_of
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_environment
from kafka_rescale.core.application.config_files import KafkaOfJob
from kafka_rescale.core.control.journal import AFTER_PROMOTION, BLUE_STOPPED, Phase
from kafka_rescale.spark.jobs.files import connector, job_file

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from pydantic import JsonValue

    from kafka_rescale.core.application.clients import DeclaredClient
    from kafka_rescale.kafka.client.connection import KafkaConnection


OVER: dict[str, tuple[Phase, ...]] = {
    **dict.fromkeys(("restore", "warm_up", "catch_up", "rehearse"), AFTER_PROMOTION),
    "prove": (*BLUE_STOPPED, *AFTER_PROMOTION),
    "move": (),
}
"""The jobs of an attempt, each with the phases in which it has nothing to do. Then no driver is started for it."""


class RescaleSparkSubmitOperator(SparkSubmitOperator):
    """
    Run a job by ``spark-submit``. Check the Spark connection first, and keep the Kafka connection secret.

    In client mode, a retry submits the job again, because the provider's ``durable`` reconnect does not exist
    there. The transactional ids of the new attempt fence the earlier attempt. On YARN in cluster mode, a retry
    does the same, unless the Spark connection's extra has ``yarn_resourcemanager_webapp_address``. With this
    address the provider can ask for the job of the earlier try, and the retry continues a job that is still at
    work.

    :param application_id: base name of the application
    :param job: ``restore``, ``warm_up``, ``catch_up``, ``prove``, ``bridge``, ``rehearse``, ``move``,
        ``snapshot``, ``process``, ``warm_up_processors``, ``keep_warm`` or ``verify``
    :param stage: index of the stage for ``restore`` and ``warm_up``
    :param acceptable_lag: offsets per partition, for ``warm_up`` and ``catch_up`` (templated)
    :param silent_seconds: seconds without a new record in the old topic after which ``bridge`` may end
    :param snapshots: location of the application's snapshots, for ``restore``
    :param whole: whether ``verify`` compares also what was compared before the promotion; a boolean or its text
        (templated)
    :param kafka_conn_id: id of the Airflow connection for Kafka. Its properties are passed in the environment of
        ``spark-submit``. Only client mode on a local or standalone master keeps that environment secret
    :param kafka_config_file: path of a JSON file with those properties, mounted where the driver runs. It is
        needed in cluster deploy mode and on YARN or Kubernetes, because ``env_vars`` become visible Spark
        properties there
    :param takes_shared_file: whether the job may use the file that the environment names for all applications, if
        ``kafka_config_file`` is needed but missing. It must be false if the connection belongs to a single role
    :param idle: whether there is nothing to do, so that no driver is started (a sub-topology without state)
    """

    # env_vars would show the Kafka connection among the rendered fields.
    template_fields: Sequence[str] = (
        *(f for f in SparkSubmitOperator.template_fields if f != "env_vars"),
        "acceptable_lag",
        "whole",
    )
    ui_color = "#fbe3c9"
    operator_extra_links = (*SparkSubmitOperator.operator_extra_links, ApplicationPageLink())
    env_vars: dict[str, str] | None
    conf: dict[str, Any] | None
    jars: str | None
    packages: str | None

    def __init__(
        self,
        *,
        application_id: str,
        job: str,
        stage: int | None = None,
        kafka_conn_id: str,
        kafka_config_file: str | None = None,
        takes_shared_file: bool = True,
        idle: bool = False,
        acceptable_lag: int | str | None = None,
        silent_seconds: int | None = None,
        snapshots: str | None = None,
        whole: str | bool = False,
        **kwargs: Any,
    ) -> None:
        self.application_id = application_id
        self.job = job
        self.stage = stage
        self.kafka_conn_id = kafka_conn_id
        self.idle = idle
        self.acceptable_lag = acceptable_lag
        self.silent_seconds = silent_seconds
        self.snapshots = snapshots
        self.whole = whole
        self.kafka_config_file = kafka_config_file
        self.takes_shared_file = takes_shared_file
        self.result_key = job if stage is None else f"{job}/{stage}"
        name = f"{application_id}-{self.result_key.replace('/', '-')}"
        super().__init__(application=str(job_file(job)), name=name, **kwargs)
        set_retry_policy(self)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result without its per-partition part."""
        if self.idle:
            self.log.info("This sub-topology has no state to copy.")
            return {}
        master = require_spark_master(self._conn_id)
        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        if self._is_over(connection):
            self.log.info("In this phase of the expansion there is nothing to copy, so no driver is started.")
            return {}
        self.env_vars = {**(self.env_vars or {}), **self._environment(master, connection)}
        self.conf = fitting(self.conf or {}, master)
        self.application_args = self._arguments(context)
        self._add_connector()
        self._follow_yarn(master)
        with TemporaryDirectory(prefix="kafka-rescale-") as directory:
            self.py_files = self._package_zip(Path(directory))
            self._submit(connection, context)
        return result_of(connection, self.application_id, self.result_key)

    def _is_over(self, connection: KafkaConnection) -> bool:
        """Return whether the job has nothing to do in the present phase of the expansion.

        A driver would find that out too, but it takes seconds to start. During a pause, these seconds would make
        the pause longer.

        :raises UnsafeState: the attempt was rolled back.
        """
        journal = journal_of(connection, self.application_id) if self.job in OVER else None
        if journal is None:
            return False
        journal.assert_not_rolled_back()
        return journal.phase in OVER[self.job]

    def get_job_status(self, external_id: JsonValue, context: Context) -> str:
        """Return the status of an earlier try's job. A job that the ResourceManager has forgotten has ended."""
        try:
            status: str = super().get_job_status(external_id, context)
        except RuntimeError as error:
            if "HTTP 404" not in str(error):
                raise
            return "FORGOTTEN"
        return status

    def is_job_succeeded(self, status: str) -> bool:
        """Return False, so that the job of an earlier try never counts as the result of this try.

        The job's id stays stored when the task is cleared. So a success may be older than the clearing.
        """
        return False

    def _follow_yarn(self, master: str) -> None:
        deploy_mode = self._deploy_mode or deploy_mode_of(self._conn_id)
        if (master, deploy_mode) == ("yarn", "cluster"):
            self.durable = self._yarn_track_via_rm_api = names_resource_manager(self._conn_id)

    def _get_hook(self) -> SparkSubmitHook:
        """Return the provider's hook, with the variables for a driver on this machine too.

        With a Kubernetes master the provider passes them only to a driver in the cluster.
        """
        hook = super()._get_hook()
        hook._env = self.env_vars
        return hook

    def _runs_on(self, client: DeclaredClient) -> None:
        """Use the Spark connection and the Spark settings of a pipeline's client."""
        self.conf = {**(self.conf or {}), **client.spark_conf}
        self._conn_id: str = client.spark_conn_id or self._conn_id

    def _submit(self, connection: KafkaConnection, context: Context) -> None:
        job = connection, self.application_id, self.result_key
        before_ms = report_as_of(*job)
        try:
            super().execute(context)
        except AirflowException as error:
            attempt = context["ti"].try_number
            reason = failure_of(*job, owner_of(context), attempt, before_ms=before_ms)
            raise reason or error from error

    def on_kill(self) -> None:
        """Kill the driver too. The provider kills only the JVM, and its Python child would go on writing."""
        process = getattr(self._hook, "_submit_sp", None)
        drivers = _descendants(process.pid) if process is not None else []
        super().on_kill()
        for driver in drivers:
            if driver.is_running():
                driver.kill()
        psutil.wait_procs(drivers, timeout=10)

    def _arguments(self, context: Context) -> list[str]:
        stage = [] if self.stage is None else ["--stage", str(self.stage)]
        run = ["--run", owner_of(context), "--attempt", str(context["ti"].try_number)]
        lag = [] if self.acceptable_lag is None else ["--acceptable-lag", str(self.acceptable_lag)]
        silence = [] if self.silent_seconds is None else ["--silent-seconds", str(self.silent_seconds)]
        snapshots = [] if self.snapshots is None else ["--snapshots", self.snapshots]
        whole = ["--whole"] if str(self.whole).lower() == "true" else []
        return ["--application", self.application_id, *stage, *run, *lag, *silence, *snapshots, *whole]

    def _environment(self, master: str, connection: KafkaConnection) -> dict[str, str]:
        local = master.startswith("local")
        python = {"PYSPARK_DRIVER_PYTHON": sys.executable} | ({"PYSPARK_PYTHON": sys.executable} if local else {})
        python |= _path(master)
        of_job = KafkaOfJob(self.kafka_conn_id, self.kafka_config_file, not self.takes_shared_file)
        return python | kafka_environment(of_job, connection, self._conn_id, master, self._deploy_mode)

    def _add_connector(self) -> None:
        jars, packages = connector()
        self.jars = self.jars or jars
        self.packages = self.packages or (None if self.jars else packages)

    @staticmethod
    def _package_zip(directory: Path) -> str:
        from kafka_rescale.spark.jobs.package_zip import build

        return str(build(directory))


def _path(master: str) -> dict[str, str]:
    """Return a PATH with spark-submit, for an Airflow that was started without activating its environment."""
    programs = Path(sys.executable).parent
    if (
        not master.startswith(("local", "spark://"))
        or which("spark-submit")
        or not which("spark-submit", path=programs)
    ):
        return {}
    return {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []
