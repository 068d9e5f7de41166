"""Run the verification job by ``spark-submit``, and fetch its report from the control topic."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.core.verify.report import Report, is_about, to_be_verified
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import environment_of
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.spark.jobs.files import connector, job_file

PASSED, FINDINGS = 0, 1
LAST_LINES = 5


def run_verify(application: Application, connection: KafkaConnection, master: str) -> Report:
    """Run the job and return its report. For an expansion that has ended, this is the report that it ended with.

    :param master: The Spark master. The driver runs on this machine.
    :raises Refused: There is nothing to verify yet.
    :raises InvalidInput: There is no ``spark-submit``.
    :raises Outage: The job came to no result.
    """
    control = ControlTopic(connection, application.application_id)
    # The job would refuse too, but only after the seconds that Spark takes to start.
    journal = to_be_verified(application.application_id, control.read().journal)
    began_ms = now_ms()
    with TemporaryDirectory(prefix="kafka-rescale-") as directory:
        done = subprocess.run(
            _command(application, master, Path(directory)),
            env={**os.environ, **environment_of(connection.config)},
            capture_output=True,
            text=True,
            check=False,
        )
    report = control.read().report
    if done.returncode not in {PASSED, FINDINGS} or not _is_result(report, journal, began_ms):
        raise _no_result(done)
    return Report.model_validate(report)


def _is_result(report: Mapping[str, object], journal: Journal, began_ms: int) -> bool:
    """Return whether a report is the result of this job.

    Exit code 1 doesn't prove it: Python and spark-submit also end with 1 when they come to no result. Then the
    control topic still has the report of an earlier job.

    :param began_ms: When the job was submitted, in epoch milliseconds. Its driver has this machine's clock.
    """
    if not is_about(report, journal):
        return False
    return journal.is_verified or Report.model_validate(report).as_of_ms >= began_ms


def _command(application: Application, master: str, directory: Path) -> list[str]:
    from kafka_rescale.spark.jobs.package_zip import build

    beside = Path(sys.executable).with_name("spark-submit")
    program = str(beside) if beside.exists() else shutil.which("spark-submit")
    if program is None:
        raise InvalidInput(
            "spark-submit",
            found="no such program",
            expected="the program beside this Python or on the PATH",
            remedy="Install pyspark, or add Spark's bin directory to PATH.",
        )
    jars, packages = connector()
    libraries = ["--jars", jars] if jars else ["--packages", packages or ""]
    extra = [f for name, value in sorted(application.spark_conf.items()) for f in ("--conf", f"{name}={value}")]
    # Without --whole, the job compares only what was not compared before the promotion, as a task of a run does.
    job = [str(job_file("verify")), "--application", application.application_id, "--whole"]
    job += ["--run", f"shell/{os.getpid()}"]
    return [program, "--master", master, "--py-files", str(build(directory)), *libraries, *extra, *job]


def _no_result(done: subprocess.CompletedProcess[str]) -> Outage:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    # Spark's own log lines follow the job's error.
    told = [line for line in lines if " ERROR root " in line] or lines[-LAST_LINES:]
    return Outage(
        "verification job",
        found=f"exit code {done.returncode}: {' | '.join(told)}",
        expected="a report",
        remedy="Correct what these lines name, then run verify again.",
    )
