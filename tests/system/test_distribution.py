"""The wheel in its own environment: Airflow, commands and Spark jobs run from the wheel, and from nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale import __version__
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import assert_copied, changelog, create, plan_of, records, write
from tests.integration.spark_job_helpers import RUN, begin
from tests.support.application_files import write_application

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
NAME = "orders-app"
KINDS = ("accept", "bridge", "expand", "pace", "retire", "rollback", "switch", "watch")
WHERE = "import kafka_rescale; print(kafka_rescale.__file__)"
SUBMIT = """
import subprocess, sys
from pathlib import Path
from kafka_rescale.spark.jobs.files import job_file, require_spark_files
from kafka_rescale.spark.jobs.package_zip import build
require_spark_files()
program, directory, *arguments = sys.argv[1:]
options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "--py-files", build(Path(directory))]
sys.exit(subprocess.run([program, *options, job_file("restore"), *arguments]).returncode)
"""

pytestmark = pytest.mark.system


def output_of(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a command that has to succeed, and return what it prints."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(target: str, source: Path, directory: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    env = {**os.environ, **changes}
    return subprocess.run(
        command, cwd=source, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def built(target: str, source: Path, directory: Path, **changes: str) -> Path:
    done = build(target, source, directory, **changes)
    assert done.returncode == 0, done.stderr
    (file,) = directory.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel, and an Airflow home with one DAG file and one application file."""

    programs: Path
    home: Path

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment variables.

        They name nothing of this project: neither PYTHONPATH nor a plugins folder.
        """
        foreign = ("AIRFLOW", "KAFKA_RESCALE", "PYTHON", "PYSPARK", "PYTEST")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return {**kept, "AIRFLOW_HOME": str(self.home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", **changes}

    def python(self, *arguments: str | Path, **changes: str) -> str:
        return output_of(self.programs / "python", *arguments, cwd=self.home, env=self.environment(**changes))

    def airflow(self, *arguments: str, **changes: str) -> list[dict[str, Any]]:
        """Return the list that Airflow prints after its log lines."""
        listed = self.python("-m", "airflow", *arguments, "--output", "json", **changes)
        return json.loads(listed.splitlines()[-1])  # type: ignore[no-any-return]

    def own_plugins(self, **changes: str) -> list[str]:
        """Where the plugin is registered from, with an entry for each registration."""
        return [p["source"] for p in self.airflow("plugins", **changes) if p["name"] == "kafka_rescale"]


@pytest.fixture(
    scope="module",
    params=["beside this environment", pytest.param("from the index", marks=pytest.mark.slow)],
)
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    directory = tmp_path_factory.mktemp("installed")
    output_of(sys.executable, "-m", "venv", "--without-pip", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    if request.param == "from the index":
        output_of(*install, f"{wheel}[spark]")
    else:
        # Use the Airflow of this environment, because a download of 1 GB is for the slow suite.
        (packages,) = (directory / "venv" / "lib").glob("python3*/site-packages")
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        output_of(*install, "--offline", "--no-deps", wheel)
    made = Installed(python.parent, directory / "airflow")
    write_application(made.home / "applications")
    (made.home / "dags").mkdir()
    shutil.copy(made.python("-m", "kafka_rescale", "path", "dags").strip(), made.home / "dags")
    return made


def test_the_package_is_the_one_of_the_wheel_and_has_no_test_bed(installed: Installed) -> None:
    package = Path(installed.python("-c", WHERE).strip()).parent
    assert package.is_relative_to(installed.programs.parent)
    assert (package / "py.typed").is_file()
    assert not (package.parent / "testbed").exists()


def test_airflow_lists_the_provider_the_plugin_and_the_dags(installed: Installed) -> None:
    (provider,) = (p for p in installed.airflow("providers", "list") if p["package_name"] == "kafka-rescale")
    assert provider["version"] == __version__
    assert [source.split(":")[0] for source in installed.own_plugins()] == [f"kafka-rescale=={__version__}"]
    installed.python("-m", "airflow", "db", "migrate")
    installed.python("-m", "airflow", "dags", "reserialize")
    assert {dag["dag_id"] for dag in installed.airflow("dags", "list")} == {f"{kind}_{NAME}" for kind in KINDS}


def test_beside_the_plugins_folder_of_a_checkout_the_plugin_is_registered_once(installed: Installed) -> None:
    both = installed.own_plugins(AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"))
    assert [source.split(":")[0] for source in both] == [f"kafka-rescale=={__version__}"]


def test_the_commands_run(installed: Installed) -> None:
    said = installed.python("-m", "kafka_rescale", "validate", installed.home / "applications" / f"{NAME}.yaml")
    assert f"{NAME}: the file is valid" in said
    program = output_of(installed.programs / "kafka-rescale", "path", "gate", env=installed.environment())
    with zipfile.ZipFile(program.strip()) as jar:
        assert "org/kafkarescale/WarmUpGate.class" in jar.namelist()


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="512m") as broker:
        yield KafkaConnection(broker.client_config())


def test_a_spark_job_runs(installed: Installed, connection: KafkaConnection, tmp_path: Path) -> None:
    application = f"shop-{uuid.uuid4().hex[:8]}"
    move = changelog(application, "timestamped-key-value", 2, 4)
    plan = plan_of(application, move)
    create(connection, plan)
    control = begin(connection, plan)
    write(connection, move, records(100))
    programs = f"{installed.programs}{os.pathsep}{Path(sys.executable).parent}"
    program = shutil.which("spark-submit", path=programs)
    assert program is not None
    installed.python(
        "-c",
        SUBMIT,
        *(program, tmp_path, "--application", application, "--run", RUN, "--stage", "1", "--attempt", "1"),
        KAFKA_RESCALE_KAFKA_CONFIG=json.dumps(dict(connection.config)),
        PYSPARK_PYTHON=str(installed.programs / "python"),
        PYSPARK_DRIVER_PYTHON=str(installed.programs / "python"),
    )
    assert control.read().results["restore/1"].state == "done"
    assert_copied(connection, move)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the unpacked source distribution."""
    directory = tmp_path_factory.mktemp("source")
    with tarfile.open(built("sdist", ROOT, directory / "sdist")) as archive:
        archive.extractall(directory / "unpacked", filter="data")
    (unpacked,) = (directory / "unpacked").iterdir()
    return unpacked


def test_a_wheel_from_the_source_distribution_is_the_same_and_needs_no_java(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    again = built("wheel", source, tmp_path, PATH="")
    assert again.read_bytes() == wheel.read_bytes()


def test_a_wheel_without_the_gate_is_not_built(source: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(source, changed)
    shutil.rmtree(changed / "jvm" / "target")
    done = build("wheel", changed, tmp_path / "wheel", PATH="")
    assert done.returncode != 0
    assert done.stderr.startswith(
        "The jar of the warm-up gate is missing or outdated, and can't be built. java was"
    )
    assert "Traceback" not in done.stderr
