"""What `make demo` runs, with less data: it succeeds, and with a record removed it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka_rescale.core.verify.proof import Proof

from testbed.demo import main

pytestmark = pytest.mark.system
SMALL = ["--preload", "8000", "--limit", "14000", "--rate", "20"]


@pytest.mark.slow  # test_every_dag.py takes the same way in each test run
def test_the_demo_ends_with_everything_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(tmp_path / "demo"), *SMALL]) == 0, capsys.readouterr().out[-5000:]
    printed = capsys.readouterr().out
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert "Airflow's UI: http://127.0.0.1:" in printed
    assert report["passed"]
    assert report["report"]["passed"]
    assert report["order"].index("stage_1_subtopology_2.restore") < report["order"].index(
        "stage_2_subtopology_1.restore"
    )
    for part in ("quiesce", "drain", "delta", "offsets", "release", "restore", "first_output", "total"):
        assert part in report["timings"]
    assert report["compared"]
    assert not report["differences"]


@pytest.mark.slow  # the oracles are tested one by one in each test run
def test_with_a_record_removed_the_demo_fails_and_names_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--directory", str(tmp_path / "demo"), *SMALL, "--remove-record"]) == 1
    printed = capsys.readouterr().out
    removed = printed.split("Removed the record of key b'")[1].split("'")[0]
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert not Proof.model_validate(report["proof"]).passed
    assert removed in json.dumps(report["proof"]), "the proof must name the key"
    assert printed.count(removed) > 1, "the printed proof must name the key"
    assert not report["is_promoted"]
    assert "Nothing was promoted: the old generation runs on." in printed
