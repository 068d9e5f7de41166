"""The slow suites in pieces: each test is in exactly one of about equally long pieces.

And the table of results.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.house.documents import ROOT, in_its_folder, rows
from tests.support.house.shards import CUT_FROM, HEADER, PAGE, Shard, minutes_by_file, shards_of
from tests.support.house.slow_results import newest, summary, updated

CASES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 30), st.floats(0.1, 300)), min_size=1
)


@given(CASES, st.integers(1, 9))
def test_each_shard_has_its_share(cases: dict[str, tuple[int, float]], shards: int) -> None:
    files = [file for file, (count, _) in cases.items() for _ in range(count)]
    minutes = {file: cost for file, (_, cost) in cases.items()}
    chosen = shards_of(files, minutes, shards)
    assert chosen == shards_of(files, minutes, shards)
    assert set(chosen) <= set(range(1, shards + 1))
    load = Counter({number: 0.0 for number in range(1, shards + 1)})
    largest = 0.0
    for (file, number), count in Counter(zip(files, chosen, strict=True)).items():
        of_file = minutes[file] * count / cases[file][0]
        load[number] += of_file
        largest = max(largest, of_file)
    assert max(load.values()) - min(load.values()) <= largest * 2 + 0.01


def test_a_file_stays_whole_unless_it_is_long_and_has_many_cases() -> None:
    files = ["few"] * (CUT_FROM - 1) + ["many"] * 40 + ["short"] * 20
    chosen = shards_of(files, {"few": 100.0, "many": 100.0, "short": 1.0}, 4)
    of = {
        file: [number for name, number in zip(files, chosen, strict=True) if name == file] for file in set(files)
    }
    assert len(set(of["few"])) == len(set(of["short"])) == 1
    assert len(set(of["many"])) > 1
    changes = sum(a != b for a, b in zip(of["many"], of["many"][1:], strict=False))
    assert changes == len(set(of["many"])) - 1, "consecutive cases stay together"


@pytest.mark.parametrize("text", ["0/6", "7/6", "2", "a/b", "", "2/6 "])
def test_a_piece_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a piece of several, such as 2/6"):
        Shard.parse(text)


def run(folder: Path, shard: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.support.house.shards"]
    options = [f"--rootdir={folder}", "-c", "/dev/null", "-m", "slow", f"--shard={shard}", f"--results={folder}"]
    return subprocess.run(
        [*command, *options, folder], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )


def test_all_shards_together_run_every_slow_test_once_and_leave_its_result(tmp_path: Path) -> None:
    slow = "import pytest\n@pytest.mark.slow\n@pytest.mark.parametrize('case', range(2))\ndef test_it(case): ...\n"
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(slow + "def test_quick(): ...\n")
    (tmp_path / "test_d.py").write_text("import pytest\n@pytest.mark.slow\ndef test_it(): assert not 'reached'\n")
    codes = [run(tmp_path, f"{number}/3").returncode for number in (1, 2, 3)]
    assert sorted(codes) == [0, 0, 1]
    lines = [json.loads(line) for file in tmp_path.glob("*-of-3.jsonl") for line in file.read_text().splitlines()]
    outcomes = {line["test"].rpartition("/")[2]: line["outcome"] for line in lines}
    expected = {f"test_{name}.py::test_it[{case}]": "passed" for name in "abc" for case in (0, 1)}
    assert outcomes == {**expected, "test_d.py::test_it": "failed"}
    assert len(lines) == 7
    refused = run(tmp_path, "4/3")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "SHARD: found '4/3'" in refused.stderr


def test_every_slow_file_has_its_row() -> None:
    files = {
        str(file.relative_to(ROOT))
        for suite in ("integration", "system")
        for file in (ROOT / "tests" / suite).rglob("test_*.py")
        if re.search(r"\bmark\.slow\b", file.read_text())
    }
    assert {in_its_folder(row[0].strip("`")) for row in rows(PAGE.read_text(), HEADER)} == files
    assert len(minutes_by_file(PAGE.read_text())) > 30


def test_results_are_written_into_the_table(tmp_path: Path) -> None:
    def line(test: str, outcome: str, time: str) -> str:
        return json.dumps({"test": test, "outcome": outcome, "seconds": 90, "time": time, "commit": "abc"})

    file = in_its_folder("S/test_demo.py")
    (tmp_path / "1-of-2.jsonl").write_text(line(f"{file}::test_a", "failed", "2026-11-25T10:00:00+00:00") + "\n")
    (tmp_path / "2-of-2.jsonl").write_text(
        line(f"{file}::test_a", "passed", "2026-11-26T10:00:00+00:00")
        + "\n"
        + line(f"{file}::test_b", "failed", "2026-11-26T11:00:00+00:00")
        + "\n"
    )
    results = newest(tmp_path)
    assert summary(results.values()) == ("3.0", "2026-11-26, abc: 1 passed, 1 failed: `test_b`")
    before = PAGE.read_text()
    after = updated(before, results)
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert len(changed) == 1
    assert changed[0].startswith("| `S/test_demo.py` | the demo ends well")
    assert changed[0].endswith("| 2 | 3.0 | 2026-11-26, abc: 1 passed, 1 failed: `test_b` |")
