"""The settings with which each part of the test bed's Airflow begins."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from testbed import airflow_local_settings

ROOT = Path(__file__).resolve().parents[3]
FORK = """
import os, sys
import airflow_local_settings
assert "kafka_rescale" not in sys.modules
if (child := os.fork()) == 0:
    os._exit(0 if "kafka_rescale.airflow.all_dags" in sys.modules else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_has_the_modules_of_tasks() -> None:
    path = os.pathsep.join([str(ROOT / "testbed"), str(ROOT / "plugins")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", FORK], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_module_is_there() -> None:
    assert [name for name in airflow_local_settings._OF_TASKS if find_spec(name) is None] == []


def test_no_connection_to_the_database_waits_for_the_disk(tmp_path: Path) -> None:
    """When each write waited 0.3 s for the disk, a request to the API had no answer after 60 s."""
    asked = text("PRAGMA synchronous")
    engine = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    with engine.connect() as connection:
        assert connection.execute(asked).scalar() == 0

    async def asynchronous() -> object:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/airflow.db")
        async with engine.connect() as connection:
            found = (await connection.execute(asked)).scalar()
        await engine.dispose()
        return found

    assert asyncio.run(asynchronous()) == 0


LOOP = """
import os, sys, threading
sys.argv = ["airflow", {command!r}]
import airflow_local_settings
from sqlalchemy import create_engine, text
engine = create_engine("sqlite:///{file}?timeout=120")
def asked():
    with engine.connect() as connection:
        print(connection.execute(text("PRAGMA busy_timeout")).scalar())
asked()
thread = threading.Thread(target=asked)
thread.start()
thread.join()
asked()
"""


@pytest.mark.parametrize(
    ("command", "seconds"), [("api-server", [2, 120, 2]), ("triggerer", [120, 120, 120])], ids=["api", "triggerer"]
)
def test_only_the_loop_of_the_api_server_gives_up_soon(command: str, seconds: list[int], tmp_path: Path) -> None:
    """The loop waits for stuck requests before it goes on. Two such waits of 120 s each were seen."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "testbed")}
    program = LOOP.format(command=command, file=tmp_path / "airflow.db")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert [int(line) // 1000 for line in done.stdout.split()] == seconds, done.stderr
