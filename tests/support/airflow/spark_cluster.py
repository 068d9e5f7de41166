"""A standalone Spark cluster: a master and workers. Each is a process of its own, as on several machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.processes import end_with_parent, free_ports, wait_until
from tests.support.kills import kill_session

SPARK_CLASS = Path(sys.executable).with_name("spark-class")
DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_cluster(directory: Path, *cores: int) -> Iterator[str]:
    """Start the cluster, and give the master's URL.

    :param directory: for logs, and for what the workers unpack.
    :param cores: the number of each worker's cores. There is a worker for each number.
    """
    port, *uis = free_ports(2 + len(cores))
    master = f"spark://127.0.0.1:{port}"
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as processes:
        log = directory / "master.log"
        listens = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(uis[0])]
        processes.enter_context(_process(log, f"{DEPLOY}.master.Master", *listens))
        wait_until(lambda: "New state: ALIVE" in log.read_text(), timeout=120, what="Spark's master")
        for number, (count, ui) in enumerate(zip(cores, uis[1:], strict=True)):
            at_work = ["--work-dir", str(directory / f"work-{number}"), "--webui-port", str(ui)]
            size = ["--host", "127.0.0.1", "--cores", str(count), "--memory", "1g"]
            worker = directory / f"worker-{number}.log"
            processes.enter_context(_process(worker, f"{DEPLOY}.worker.Worker", *at_work, *size, master))
        wait_until(
            lambda: log.read_text().count("Registering worker") == len(cores), timeout=120, what="Spark's workers"
        )
        yield master


@contextmanager
def _process(log: Path, *command: str) -> Iterator[None]:
    # Workers on other machines find Python by its name, and do not know the environment of a driver.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_RESCALE")}
    environment |= {"PATH": f"{SPARK_CLASS.parent}{os.pathsep}{os.environ['PATH']}", "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    watchdog = end_with_parent(process.pid)
    try:
        yield
    finally:
        kill_session(process.pid)
        process.wait()
        watchdog.kill()
        watchdog.wait()
