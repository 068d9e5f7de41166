"""An expansion without Airflow: the same operations and the same spark-submit jobs, step by step.

It follows the list of ``core/expansion/run.py``, as the DAG does. A test or a benchmark can look, kill or change
something between any two tasks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.run import Task, tasks_of
from kafka_rescale.core.job_requests import as_argument
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.request import request_of
from kafka_rescale.core.verify.promotable import assert_proof
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.begin import begin
from kafka_rescale.operations.expansion.finish import finish
from kafka_rescale.operations.expansion.prewarm import prewarm
from kafka_rescale.operations.expansion.stages import expand_stage
from kafka_rescale.operations.preflight.preflight import preflight
from kafka_rescale.spark.jobs.package_zip import build

from testbed.jars import ensure_jars
from testbed.processes import end_with_parent

ROOT = Path(__file__).resolve().parents[1]
SUBMIT = Path(sys.executable).parent / "spark-submit"
FINDINGS = 1
"""The exit code of a verify that has found differences. It is a result, and no failure."""
Runner = Callable[["Expansion", str, int | None], None]


def run_by_submit(expansion: Expansion, name: str, stage: int | None) -> None:
    """Run a job to its end by ``spark-submit``, and expect success.

    :param stage: the stage of the job, if it has one.
    """
    whole = name == "verify" and expansion.verifies_whole
    process = expansion.submit(name, stage, more=("--whole",) if whole else ())
    expected = {0, FINDINGS} if name == "verify" else {0}
    assert process.wait(expansion.patience) in expected, expansion.log_of(name, stage)


@dataclass
class Expansion:
    """One run of one application file.

    :param directory: directory for logs and the zip of the package.
    :param application: the application as loaded, with the changes of a test.
    :param owner: the owner of the lease.
    :param patience: seconds that a Spark job may take.
    :param runner: runs a job to its end.
    :param verifies_whole: whether verify also compares what was compared before the promotion.
    """

    directory: Path
    application: Application
    connection: KafkaConnection
    owner: str = "shell/run-1"
    attempt: int = 1
    patience: float = 600
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    bridge: subprocess.Popen[bytes] | None = None
    beside: tuple[str, subprocess.Popen[bytes]] | None = None
    timings: dict[str, float] = field(default_factory=dict)
    verifies_whole: bool = False
    runner: Runner = run_by_submit

    @classmethod
    def of_file(
        cls,
        file: Path,
        bootstrap_servers: str,
        directory: Path,
        changes: Mapping[str, Any] | None = None,
        runner: Runner = run_by_submit,
    ) -> Expansion:
        """Return an expansion of an application file.

        :param changes: changed fields of the file.
        :param runner: as of the expansion.
        """
        directory.mkdir(parents=True, exist_ok=True)
        application = load_application(file)
        if changes:
            application = Application.model_validate({**application.model_dump(by_alias=True), **changes})
        connection = KafkaConnection({"bootstrap.servers": bootstrap_servers})
        return cls(directory, application, connection, runner=runner)

    @property
    def control(self) -> ControlTopic:
        """The control topic of this application."""
        return ControlTopic(self.connection, self.application.application_id)

    def state(self) -> ControlState:
        """Return what is known about the application."""
        return self.control.read()

    def begin(self, target: int | None = None) -> Plan:
        """Preflight, plan, take the lease and begin."""
        application, connection, owner, at = self.application, self.connection, self.owner, now_ms()
        asked, topology = target or application.partitions, topology_of(application)
        found = preflight(
            application, topology, connection, target=asked, owner=owner, now_ms=at, owner_is_finished=_is_finished
        )
        assert found.plan is not None, found.messages
        begin(
            application,
            connection,
            found.plan,
            owner=owner,
            now_ms=at,
            owner_is_finished=_is_finished,
            predicted=found.predicted,
        )
        return found.plan

    def run(self, target: int | None = None) -> dict[str, float]:
        """Do everything, from preflight to the end, and return the timings."""
        self.follow(self.begin(target))
        return self.timings

    def follow(self, plan: Plan, *, before: str = "") -> None:
        """Do the tasks of a run that has begun, in their order.

        :param before: the first task that is not done; empty to go to the end.
        """
        tasks = tasks_of(self.application.mode, [stage.name for stage in plan.stages])
        assert before in {"", *(task.step.task for task in tasks)}, before
        for task in takewhile(lambda task: task.step.task != before, tasks):
            self.do(task, plan)

    def do(self, task: Task, plan: Plan) -> None:
        """Do one task of a run that goes well."""
        name = task.step.task
        calls = {
            "prewarm": self.prewarm,
            "cutover": self.cut_over,
            "verify": self.assert_verified,
            "callback": self.finish,
        }
        if name == "expand":
            expand_stage(self.application, self.connection, owner=self.owner, stage=task.stage or 0)
        elif call := calls.get(name):
            call()
        elif task.step.is_beside:
            self.beside = name, self.submit(name)
        elif task.step.is_job and (task.stage is None or plan.stage(task.stage).changelogs):
            self.job(name, task.stage)

    def warm(self, plan: Plan) -> None:
        """Expand, restore and warm up every stage."""
        self.follow(plan, before="prewarm")

    def prewarm(self) -> dict[str, float] | None:
        """Restore green's stores behind the warm-up gate, if the application file says how."""
        return prewarm(self.application, self.connection, owner=self.owner)

    def cut_over(self) -> dict[str, float]:
        """Run the cutover beside the job that has been submitted for it. By default, prove and submit catch_up."""
        if self.beside is None:
            self.prove_copies()
        name, beside = self.beside or ("catch_up", self.submit("catch_up"))
        return self.cut_over_beside(beside, name)

    def prove_copies(self) -> None:
        """Prove what has been copied, unless this attempt has its proof."""
        state = self.state()
        assert state.journal is not None
        try:
            assert_proof(state.journal, state)
        except UnsafeState:
            self.job("prove")

    def cut_over_beside(self, beside: subprocess.Popen[bytes], job: str = "catch_up") -> dict[str, float]:
        """Run the cutover beside a job. If the plan has bridges, start the bridge, which goes on afterwards."""
        journal = self.state().journal
        assert journal is not None
        self.bridge = self.submit("bridge") if journal.plan.bridges else None
        self.timings = run_cutover(self.application, self.connection, owner=self.owner)
        self.beside = None
        assert beside.wait(120) == 0, self.log_of(job)
        return self.timings

    def verify(self) -> dict[str, Any]:
        """Run verify and return its report, whether it has passed or not."""
        self.job("verify")
        return dict(self.state().report)

    def assert_verified(self) -> None:
        """Run verify and expect it to pass."""
        report = self.verify()
        assert report["passed"], json.dumps(report, indent=1)[:4000]

    def finish(self) -> dict[str, object]:
        """Finish the expansion."""
        return finish(self.application, self.connection, owner=self.owner)

    def job(self, name: str, stage: int | None = None) -> None:
        """Run a Spark job to its end and expect success. The findings of verify are no failure."""
        self.runner(self, name, stage)

    def snapshot(self, day: SnapshotDay) -> None:
        """Write the state of every store as of the end of a day to the location in the application file."""
        request = request_of(self.application, topology_of(self.application), day)
        process = self.submit("snapshot", more=("--request", as_argument(request)))
        assert process.wait(self.patience) == 0, self.log_of("snapshot")

    def submit(self, name: str, stage: int | None = None, more: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a Spark job by a real spark-submit.

        :param more: arguments that only this job has.
        """
        self.attempt += 1
        command = [str(SUBMIT), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
        command += ["--driver-memory", "768m", "--py-files", str(build(self.directory))]
        if name in {"prove", "verify"}:
            jars = ",".join(str(jar) for jar in sorted(ensure_jars("connector").glob("*.jar")))
            command += ["--jars", jars]
        command += [str(ROOT / "spark_jobs" / f"{name}.py"), "--application", self.application.application_id]
        command += [] if stage is None else ["--stage", str(stage)]
        if name == "bridge":
            command += ["--silent-seconds", str(max(i.silent_seconds for i in self.application.inputs))]
        if name == "restore" and self.application.snapshots:
            command += ["--snapshots", self.application.snapshots.location]
        command += [*more, "--run", self.owner, "--attempt", str(self.attempt)]
        environment = {
            **os.environ,
            "KAFKA_RESCALE_KAFKA_CONFIG": json.dumps(dict(self.connection.config)),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        with self._log_file(name, stage).open("ab") as log:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        end_with_parent(process.pid)
        self.processes.append(process)
        return process

    def log_of(self, name: str, stage: int | None = None) -> str:
        """Return the end of a job's log."""
        return self._log_file(name, stage).read_text(errors="replace")[-6000:]

    def _log_file(self, name: str, stage: int | None) -> Path:
        return self.directory / f"{name}{'' if stage is None else f'-{stage}'}.log"


def _is_finished(_: Lease) -> bool:
    """Return that any earlier owner of the lease has finished, because no other process is at work here."""
    return True
