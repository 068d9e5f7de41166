"""docker-compose.yml is valid, has no secret, and starts a service only when everything it needs is healthy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.create_env import filled_in
from testbed.airflow_settings import SMALL_MACHINE

ROOT = Path(__file__).resolve().parents[3]
COMPOSE_FILE = ROOT / "docker-compose.yml"
AIRFLOW_SERVICES = {"api-server", "scheduler", "dag-processor", "triggerer", "init"}
RUNS_ONCE = {"airflow-init"}

Compose = dict[str, Any]


def docker_compose_config(
    file: Path, environment: dict[str, str], *further: Path
) -> subprocess.CompletedProcess[str]:
    """Run Compose's own parser. It checks the schema and fills in variables, and needs no Docker."""
    parser = Path(sys.executable).with_name("docker-compose")
    files = [part for each in (file, *further) for part in ("--file", str(each))]
    options = [*files, "--project-directory", str(ROOT), "--env-file", os.devnull]
    return subprocess.run(
        [str(parser), *options, "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def example_environment() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(filled_in(line).split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def compose() -> Compose:
    result = docker_compose_config(COMPOSE_FILE, example_environment())
    assert result.returncode == 0, result.stderr
    loaded: Compose = json.loads(result.stdout)
    return loaded


def test_the_file_follows_the_compose_specification(compose: Compose) -> None:
    airflow = {name.removeprefix("airflow-") for name in compose["services"] if name.startswith("airflow-")}
    assert airflow == AIRFLOW_SERVICES
    assert {"postgres", "kafka", "spark-master", "spark-worker"} <= compose["services"].keys()


@pytest.mark.parametrize(
    ("found", "replaced"),
    [
        pytest.param("start_interval:", "begin_interval:", id="unknown key"),
        pytest.param("{condition: service_healthy}", "{condition: service_happy}", id="unknown condition"),
        pytest.param("kafka-data:/var/lib", "kafka-dat:/var/lib", id="volume without a definition"),
    ],
)
def test_the_check_refuses_a_broken_file(tmp_path: Path, found: str, replaced: str) -> None:
    broken = tmp_path / "docker-compose.yml"
    text = COMPOSE_FILE.read_text()
    assert found in text
    broken.write_text(text.replace(found, replaced))
    assert docker_compose_config(broken, example_environment()).returncode != 0


def test_every_secret_comes_from_the_environment_and_its_absence_is_named() -> None:
    required = set(re.findall(r"\$\{(\w+):\?", COMPOSE_FILE.read_text()))
    assert required == example_environment().keys()
    for missing in required:
        environment = {name: value for name, value in example_environment().items() if name != missing}
        result = docker_compose_config(COMPOSE_FILE, environment)
        assert result.returncode != 0
        assert f"{missing} is missing a value: run make env first" in result.stderr


def test_no_secret_is_written_down() -> None:
    """The compose file and the example have no secret: every such value is a reference, or empty."""
    secret = re.compile(r"(PASSWORD|SECRET|SECRET_KEY|FERNET_KEY)$")
    services = yaml.safe_load(COMPOSE_FILE.read_text())["services"].values()
    pairs = [pair for service in services for pair in (service.get("environment") or {}).items()]
    values = [value for name, value in pairs if secret.search(name)]
    assert values
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in values)
    assert not re.search(r"^\w+=.", (ROOT / ".env.example").read_text(), re.MULTILINE)


def test_a_generated_fernet_key_is_one_that_airflow_accepts() -> None:
    from cryptography.fernet import Fernet

    assert Fernet(example_environment()["AIRFLOW_FERNET_KEY"].encode())


def test_every_lasting_service_has_a_health_check_and_restarts(compose: Compose) -> None:
    for name, service in compose["services"].items():
        if name not in RUNS_ONCE:
            assert service["healthcheck"]["test"], name
            assert service["restart"] == "unless-stopped", name


def test_services_wait_until_what_they_need_is_healthy(compose: Compose) -> None:
    for name, service in compose["services"].items():
        for needed, how in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if needed in RUNS_ONCE else "service_healthy"
            assert how["condition"] == wanted, f"{name} -> {needed}"
    assert {"kafka", "spark-worker", "airflow-api-server"} <= compose["services"]["airflow-scheduler"][
        "depends_on"
    ].keys()


def test_mounted_directories_exist_and_are_read_only(compose: Compose) -> None:
    for name in AIRFLOW_SERVICES:
        volumes = compose["services"][f"airflow-{name}"]["volumes"]
        binds = {Path(volume["source"]): volume for volume in volumes if volume["type"] == "bind"}
        assert {path.name for path in binds} == {"applications", "dags", "plugins", "spark_jobs"}
        for path, volume in binds.items():
            assert path.is_dir()
            assert volume["read_only"]
            assert volume["target"] == f"/opt/airflow/{path.name}"


def test_drivers_and_executors_share_a_directory_and_a_user(compose: Compose) -> None:
    for name in ("airflow-scheduler", "airflow-triggerer", "spark-worker"):
        volumes = compose["services"][name]["volumes"]
        assert [v["target"] for v in volumes if v["type"] == "volume" and v["source"] == "data"] == ["/data"], name
    # Airflow's image runs as user 50000 in group 0.
    assert "\nUSER 50000\n" in (ROOT / "docker/spark/Dockerfile").read_text()


def test_a_killed_worker_is_noticed_as_soon_as_in_the_embedded_set_up(compose: Compose) -> None:
    environment = compose["services"]["airflow-scheduler"]["environment"]
    embedded = {name: value for name, value in SMALL_MACHINE.items() if "TASK_INSTANCE_HEARTBEAT" in name}
    assert len(embedded) == 3
    assert {name: environment[f"AIRFLOW__{name}"] for name in embedded} == embedded


def test_the_override_of_the_docs_fits(tmp_path: Path) -> None:
    text = (ROOT / "docs/docker-compose.md").read_text()
    (override,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    own = tmp_path / "docker-compose.override.yml"
    own.write_text(override)
    result = docker_compose_config(COMPOSE_FILE, example_environment(), own)
    assert result.returncode == 0, result.stderr
    services = json.loads(result.stdout)["services"]
    for name in AIRFLOW_SERVICES:
        service = services[f"airflow-{name}"]
        assert json.loads(service["environment"]["AIRFLOW_CONN_KAFKA_DEFAULT"])["extra"]["bootstrap.servers"]
        assert {"/opt/own", "/opt/airflow/dags", "/data"} <= {v["target"] for v in service["volumes"]}
        assert service["environment"]["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor", "the rest stays"


def test_the_upgrade_of_the_docs_gives_every_process_the_new_package(compose: Compose) -> None:
    """The package is a mount, so images and settings stay as they are, and `up` alone leaves old processes."""
    text = (ROOT / "docs/docker-compose.md").read_text().partition("## Upgrade")[2].partition("\n## ")[0]
    (commands,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    first, *others = commands.splitlines()
    assert first.startswith("docker compose stop ")
    using = {
        name
        for name, service in compose["services"].items()
        if any(volume["target"] == "/opt/airflow/plugins" for volume in service.get("volumes", []))
    }
    assert set(first.split()[3:]) == using - RUNS_ONCE
    assert others == ["git pull", "docker compose up --build -d"]


def test_the_pages_say_what_dies_with_airflow() -> None:
    assert "\n### A program that a command starts\n" in (ROOT / "docs/lifecycle.md").read_text()
    for page in ("install.md", "docker-compose.md"):
        upgrade = (ROOT / "docs" / page).read_text().partition("\n## Upgrade\n")[2]
        assert "(lifecycle.md#a-program-that-a-command-starts)" in upgrade, page


def test_ports_are_open_to_this_machine_only(compose: Compose) -> None:
    for service in compose["services"].values():
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", []))


def test_all_airflow_services_share_one_environment(compose: Compose) -> None:
    """The execution API refuses a token that was signed with another secret."""
    first, *others = (
        {key: value for key, value in service["environment"].items() if key.startswith("AIRFLOW_")}
        for name, service in compose["services"].items()
        if name.startswith("airflow-")
    )
    assert all(other == first for other in others)
    assert first["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].startswith("http://airflow-api-server:8080/")


def test_the_connections_lead_to_the_services(compose: Compose) -> None:
    environment = compose["services"]["airflow-scheduler"]["environment"]
    kafka = json.loads(environment["AIRFLOW_CONN_KAFKA_DEFAULT"])
    listeners = compose["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert kafka["conn_type"] == "kafka"
    assert f"NETWORK://{kafka['extra']['bootstrap.servers']}" in listeners.split(",")
    spark = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert f"{spark['host']}:{spark['port']}" in compose["services"]["spark-worker"]["command"]


def test_one_broker_asks_for_one_replica(compose: Compose) -> None:
    broker = compose["services"]["kafka"]["environment"]
    replicas = {key: value for key, value in broker.items() if key.endswith(("REPLICATION_FACTOR", "MIN_ISR"))}
    assert len(replicas) == 5
    assert set(replicas.values()) == {"1"}


def test_the_worker_has_room_for_the_jobs_that_run_side_by_side(compose: Compose) -> None:
    """A bridge and ``catch_up`` keep a core each beside ``prove``, and an executor takes 1 GB by default."""
    worker = compose["services"]["spark-worker"]["environment"]
    assert int(worker["SPARK_WORKER_CORES"]) > 1 + 1
    assert int(worker["SPARK_WORKER_MEMORY"].removesuffix("g")) >= 3
