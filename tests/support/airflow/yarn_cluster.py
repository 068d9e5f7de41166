"""A YARN cluster in one process, which runs Spark jobs in containers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from testbed.jars import JVM_DIRECTORY, ensure_jars, require_java
from testbed.processes import end_with_parent, wait_until
from tests.support.kills import kill_session

SOURCE = JVM_DIRECTORY / "yarn" / "SmallYarn.java"


@dataclass(frozen=True)
class Yarn:
    """Where the YARN cluster is.

    :param settings: directory, for ``HADOOP_CONF_DIR``.
    :param resource_manager: URL of its REST API.
    :param containers: directory of the logs of containers.
    """

    settings: Path
    resource_manager: str
    containers: Path

    def logs(self) -> str:
        """Return what drivers and executors have printed."""
        return "\n".join(each.read_text(errors="replace")[-3000:] for each in self.containers.rglob("std*"))


@contextmanager
def yarn_cluster(directory: Path) -> Iterator[Yarn]:
    """Return a cluster that has room for a driver and two executors.

    :param directory: for everything that it writes.
    """
    settings, log = directory / "settings", directory / "yarn.log"
    settings.mkdir(parents=True)
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.submodule_search_locations is not None
    hadoop = Path(spark.submodule_search_locations[0]) / "jars"
    path = f"{ensure_jars('yarn')}/*:{hadoop}/*"
    command = [require_java(), "-Xmx512m", "-cp", path, str(SOURCE), str(settings)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    watchdog = end_with_parent(process.pid)
    try:
        wait_until(
            lambda: "ready: " in log.read_text() or process.poll() is not None, timeout=240, what="YARN to start"
        )
        ready = re.search(r"ready: (\S+)", log.read_text())
        assert ready is not None, log.read_text()[-3000:]
        yield Yarn(settings, ready[1], directory)
    finally:
        kill_session(process.pid)
        process.wait()
        watchdog.kill()
        watchdog.wait()
