"""An Airflow on one machine gets all of its settings from one file, whatever its port."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from testbed.airflow_command import FILE_NAME, main

ROOT = Path(__file__).resolve().parents[3]


def sourced(home: Path) -> dict[str, str]:
    """The environment of an otherwise empty shell after it has read the file."""
    command = f". {home}/{FILE_NAME}; env -0"
    found = subprocess.run(["sh", "-c", command], env={}, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in found.split("\0") if line)


def test_every_setting_that_has_the_port_in_it_has_the_one_that_was_asked_for(tmp_path: Path) -> None:
    assert main(["--directory", str(tmp_path), "--port", "8099"]) == 0
    found = sourced(tmp_path)
    assert found["AIRFLOW__API__PORT"] == "8099"
    assert found["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8099"
    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8099/execution/"
    logs = {found[f"AIRFLOW__LOGGING__{part}_LOG_SERVER_PORT"] for part in ("WORKER", "TRIGGER")}
    assert len({"8099", *logs}) == 3


def test_two_on_one_machine_share_no_port(tmp_path: Path) -> None:
    ports = []
    for name in ("one", "two"):
        assert main(["--directory", str(tmp_path / name)]) == 0
        ports += [value for key, value in sourced(tmp_path / name).items() if key.endswith("PORT")]
    assert len(set(ports)) == len(ports) == 6


def test_it_has_the_connections_and_the_files_and_nobody_else_reads_its_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__PORT", "1")
    given = ["--kafka", "k:9093", "--spark", "local[4]", "--applications", str(tmp_path / "mine")]
    assert main(["--directory", str(tmp_path / "home"), "--port", "8098", *given]) == 0
    found = sourced(tmp_path / "home")
    assert json.loads(found["AIRFLOW_CONN_KAFKA_DEFAULT"])["extra"] == {"bootstrap.servers": "k:9093"}
    assert json.loads(found["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[4]"
    assert found["KAFKA_RESCALE_APPLICATIONS"] == str(tmp_path / "mine")
    assert found["AIRFLOW_HOME"] == str(tmp_path / "home")
    assert found["AIRFLOW__CORE__PLUGINS_FOLDER"] == str(ROOT / "plugins")
    assert found["PATH"].split(os.pathsep)[0].endswith("bin")
    assert "8098" in capsys.readouterr().out
    assert stat.S_IMODE((tmp_path / "home" / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("again", [True, False], ids=["named again", "not named again"])
def test_a_shell_that_has_read_the_file_writes_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """For another port, the command is run again, in that shell; Airflow is then started in a new one."""
    named = ["--applications", str(tmp_path / "mine")]
    assert main(["--directory", str(tmp_path), *named]) == 0
    first = sourced(tmp_path)
    for name, value in first.items():
        monkeypatch.setenv(name, value)
    assert main(["--directory", str(tmp_path), *(named if again else [])]) == 0
    second = sourced(tmp_path)
    assert second.keys() == first.keys()
    assert second["KAFKA_RESCALE_APPLICATIONS"] == str(tmp_path / "mine")


def test_the_page_names_the_command() -> None:
    text = (ROOT / "docs" / "airflow.md").read_text().partition("## On one machine")[2].partition("\n## ")[0]
    assert "make airflow-env" in text
    assert f". var/airflow/{FILE_NAME}" in text
    assert "export " not in text
