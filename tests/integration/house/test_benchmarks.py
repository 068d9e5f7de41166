"""Every benchmark runs from end to end. Tests do not check how fast anything is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.latency import main as latency
from benchmarks.names import CONTESTANTS, RESET_PARTS
from benchmarks.partitions import main as partitions
from benchmarks.pipelines import main as pipelines
from benchmarks.pipelines_page import OURS, THEIRS
from benchmarks.run import main

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TINY = ["--scale", "0.01", "--repeats", "1", "--states", "1", "--keys", "500", "--growth", "1", "2"]


def test_the_whole_run_measures_everything_and_leaves_page_and_pictures(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main([*TINY, "--out", str(out), "--directory", str(tmp_path / "scratch")]) == 0
    results = json.loads((out / "results.json").read_text())

    assert [row["copies"] for row in results["downtime"]] == [1]
    for row in results["downtime"]:
        assert row["verified"]
        assert row["equal"]
        assert {"quiesce", "prove", "delta", "promote", "first_output", "total"} <= row["parts"].keys()
        assert row["copied"]["records"] > 0
    for row in results["full_reset"]:
        assert row["equal"]
        assert row["parts"].keys() == {*RESET_PARTS, "total"}
    assert [(row["keys"], row["gated"]) for row in results["prewarming"]] == [
        (500 * growth, gated) for growth in (1, 2) for gated in (True, False)
    ]
    assert all(row["verified"] for row in results["prewarming"])
    assert all(("prewarm" in row["around"]) is row["gated"] for row in results["prewarming"])
    contestants = results["copying"]["contestants"]
    assert contestants.keys() == CONTESTANTS.keys()
    assert all(found["records_per_second"]["median"] > 0 for found in contestants.values())

    page = (out / "README.md").read_text()
    for picture in ("pause.svg", "outage.svg", "copying.svg", "prewarming.svg"):
        assert picture in page
        assert (out / picture).read_text().rstrip().endswith("</svg>")


def test_a_run_of_a_pipeline_is_measured_beside_structured_streaming(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sizes = ["--keys", "500", "--records", "300", "--repeats", "1"]
    assert pipelines(["--out", str(out), "--directory", str(tmp_path / "scratch"), *sizes]) == 0
    rows = json.loads((out / "pipelines.json").read_text())["rows"]
    assert [row["who"] for row in rows[:2]] == [OURS, THEIRS]
    assert len({row["what"] for row in rows}) == 5
    working = [row for row in rows if "nothing" not in row["what"]]
    assert all(0 < row["batch"] < row["job"] < row["run"] for row in working)
    assert (out / "pipelines.svg").read_text().rstrip().endswith("</svg>")
    assert "Structured Streaming" in (out / "pipelines.md").read_text()


def test_an_expansion_is_measured_by_the_number_of_partitions(tmp_path: Path) -> None:
    out = tmp_path / "partitions.json"
    assert partitions(["--partitions", "4", "--directory", str(tmp_path / "scratch"), "--out", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["verified"]
    assert row["source_partitions"] == 20
    assert {"quiesce", "delta", "delta_proof", "promote", "total"} <= row["pause"].keys()


def test_what_a_copy_costs_an_application_is_measured(tmp_path: Path) -> None:
    sizes = ["--keys", "20000", "--seconds", "5", "--limits", "20000"]
    assert latency([*sizes, "--directory", str(tmp_path / "scratch"), "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "latency.json").read_text())["rows"]
    assert [row["limit"] for row in rows] == [None, 20_000]
    assert all(row[name]["p99_ms"] > 0 for row in rows for name in ("alone", "copying"))
    assert (tmp_path / "latency.svg").read_text().rstrip().endswith("</svg>")
