"""Starts the jobs as in production: by ``spark-submit`` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.spark.jobs.package_zip import build

from testbed.jars import ensure_jars
from testbed.processes import end_with_parent, is_running, kill_process, wait_until

ROOT = Path(__file__).resolve().parents[2]
RUN = "shell/test/1"
SECONDS = 300
LOCAL = "local[2]"
FOR_EVER_MS = 10**15


class Submitted:
    """A submitted job, and what it prints."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    def result(self) -> int:
        """Wait for the end of the job, and return its exit code."""
        return self.process.wait(SECONDS)

    def text(self) -> str:
        """Everything that it has printed so far."""
        return self.log.read_text(errors="replace")

    def python_processes(self) -> set[int]:
        """The driver and workers: all processes below ``spark-submit`` except the JVM."""
        return {pid for pid in descendants(self.process.pid) if "python" in command_of(pid).partition(" ")[0]}

    def driver(self) -> int:
        """The process of the driver."""
        return next(pid for pid in self.python_processes() if "spark_jobs" in command_of(pid))


def command_of(pid: int) -> str:
    """The command line of a process, or "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> Iterator[int]:
    """Yield all processes below a process."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        for child in children:
            yield int(child)
            yield from descendants(int(child))


@contextmanager
def submitted(
    connection: KafkaConnection,
    directory: Path,
    job: str,
    plan: Plan | str,
    *arguments: str,
    attempt: int = 1,
    path: str | None = None,
    master: str = LOCAL,
) -> Iterator[Submitted]:
    """Run a job during the block. It is killed at the end, unless it has ended by itself.

    :param plan: the plan, or the application's name for a job without a plan.
    :param path: PYTHONPATH of driver and workers.
    :param master: master of a cluster. Its workers find their Python themselves.
    """
    application = plan if isinstance(plan, str) else plan.application
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    command += ["--conf", "spark.ui.enabled=false", "--driver-memory", "512m", "--py-files", str(build(directory))]
    command += [str(ROOT / "spark_jobs" / f"{job}.py"), "--application", application, "--run", RUN]
    command += ["--attempt", str(attempt), *arguments]
    environment = {
        **os.environ,
        "KAFKA_RESCALE_KAFKA_CONFIG": json.dumps(dict(connection.config)),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
    }
    for foreign in ("PYTHONPATH", *([] if master.startswith("local[") else ["PYSPARK_PYTHON"])):
        environment.pop(foreign, None)
    if path is not None:
        environment["PYTHONPATH"] = path
    log = directory / f"{job}-{attempt}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    # A worker of the tests that dies must not leave a job behind that goes on beside all later tests.
    end_with_parent(process.pid)
    job_process = Submitted(process, log)
    try:
        yield job_process
    finally:
        pids = [process.pid, *descendants(process.pid)] if process.poll() is None else []
        for pid in pids:
            if is_running(pid):
                kill_process(pid)
        process.wait()


def submit_verify(
    client: Mapping[str, str],
    application: str,
    directory: Path,
    conf: Mapping[str, str] | None = None,
    more_jars: Iterable[Path] = (),
) -> subprocess.CompletedProcess[str]:
    """Run the verification to its end.

    :param client: librdkafka settings of the job.
    :param conf: Spark properties in addition to the usual ones.
    :param more_jars: jars in addition to those of Spark's Kafka connector.
    """
    jars = ",".join(map(str, [*sorted(ensure_jars("connector").glob("*.jar")), *more_jars]))
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--jars", jars]
    command += ["--py-files", str(build(directory)), "--driver-memory", "768m"]
    for name, value in {"spark.ui.enabled": "false", **(conf or {})}.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(ROOT / "spark_jobs" / "verify.py"), "--application", application]
    command += ["--run", "test", "--attempt", "1"]
    environment = {
        **os.environ,
        "KAFKA_RESCALE_KAFKA_CONFIG": json.dumps(dict(client)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def begin(connection: KafkaConnection, plan: Plan, run: str = RUN) -> ControlTopic:
    """Write the lease and the journal of a new expansion."""
    control = ControlTopic(connection, plan.application)
    control.ensure(1)
    lease = Lease(owner=run, epoch=1, target=plan.partitions, expires_at_ms=FOR_EVER_MS)
    control.update(lambda _: {"lease": lease, "journal": Journal(plan=plan)})
    return control


def advance(control: ControlTopic, phase: Phase, **changes: object) -> None:
    """Write the journal's next phase, as the cutover does."""
    control.update(lambda s: {"journal": s.journal.model_copy(update={"phase": phase, **changes})})


def wait_for(control: ControlTopic, job: str, state: str, attempt: int | None = None) -> JobResult:
    """Wait until the job's result has a state, and return it."""

    def result() -> JobResult | None:
        found = control.read().results.get(job)
        return found if found and found.state == state and attempt in {None, found.attempt} else None

    wait_until(result, timeout=SECONDS, what=f"{job} to be {state}")
    found = result()
    assert found is not None
    return found


def captured(plan: Plan, ends: Callable[[str], dict[int, int]], committed: dict[str, dict[int, int]]) -> Captured:
    """Return what the cutover captures after blue has stopped."""
    return Captured(
        changelog_ends={m.source: ends(m.source) for s in plan.stages for m in s.changelogs},
        in_flight={
            m.source: {p: (committed.get(m.source, {}).get(p, 0), end) for p, end in ends(m.source).items()}
            for s in plan.stages
            for m in s.repartitions
        },
    )
