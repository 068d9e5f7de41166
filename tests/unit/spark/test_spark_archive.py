"""The archive of Spark's classes is made once, and used if it exists. Without it, everything works too."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from testbed.archives import class_archive, spark_archive
from testbed.archives.spark_archive import ensure_spark_archive, spark_environment


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The answer is asked once per process, by a program that these tests replace.
    class_archive.require_java()
    monkeypatch.setattr(spark_archive, "ARCHIVES", tmp_path / "spark")
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)


def trained(monkeypatch: pytest.MonkeyPatch, *, code: int, makes: bool) -> list[str]:
    """Replace the training job, and return the options that it was started with."""
    options: list[str] = []

    def run(_: list[str], *, env: dict[str, str], **__: Any) -> subprocess.CompletedProcess[str]:
        options.append(env["SPARK_SUBMIT_OPTS"])
        if makes:
            Path(options[-1].split("ArchiveClassesAtExit=")[1].split()[0]).write_text("classes")
        return subprocess.CompletedProcess([], code, stderr="why")

    monkeypatch.setattr(spark_archive.subprocess, "run", run)
    return options


def test_it_is_made_once_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = trained(monkeypatch, code=0, makes=True)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    assert spark_environment() == {}
    archive = ensure_spark_archive()
    assert ensure_spark_archive() == archive
    assert len(runs) == 1
    used = spark_environment()["SPARK_SUBMIT_OPTS"]
    assert used.startswith(f"-Dmine=1 -Xshare:auto -XX:SharedArchiveFile={archive} ")
    # A process that already has the option needs nothing more.
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", used)
    assert spark_environment() == {}


@pytest.mark.parametrize(("code", "makes"), [(1, True), (0, False)])
def test_a_jvm_that_can_not_archive_costs_time_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, makes: bool
) -> None:
    trained(monkeypatch, code=code, makes=makes)
    assert ensure_spark_archive() is None
    assert "jobs start more slowly" in caplog.text
    assert spark_environment() == {}
