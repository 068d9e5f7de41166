"""Writes the results of the slow suites into the table of docs/development/slow-suites.md.

Run it after the last shard: ``.venv/bin/python -m tests.support.house.slow_results``
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.house.documents import in_its_folder
from tests.support.house.shards import HEADER, PAGE, RESULTS


def newest(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each test in all result files of a folder."""
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {line["test"]: line for line in sorted(lines, key=lambda line: str(line["time"]))}


def summary(results: Iterable[dict[str, Any]]) -> tuple[str, str]:
    """Return the minutes that the tests of one file took, and their outcome in the words of the table."""
    results = list(results)
    counts = Counter(result["outcome"] for result in results)
    last = max(results, key=lambda result: str(result["time"]))
    words = ", ".join(
        f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if counts[outcome]
    )
    failed = [result["test"].partition("::")[2] for result in results if result["outcome"] == "failed"]
    names = ": " + ", ".join(f"`{name}`" for name in failed) if failed else ""
    minutes = sum(result["seconds"] for result in results) / 60
    return f"{minutes:.1f}", f"{last['time'][:10]}, {last['commit']}: {words}{names}"


def updated(page: str, results: dict[str, dict[str, Any]]) -> str:
    """Return the page with the results of all files that have some.

    If not all cases of a file have run, the page keeps its minutes, because they are for the whole file.
    """
    lines = page.splitlines(keepends=True)
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {HEADER}"))
    for number in range(begin + 2, len(lines)):
        if not lines[number].startswith("|"):
            break
        cells = [cell.strip() for cell in lines[number].strip().strip("|").split(" | ")]
        file = in_its_folder(cells[0].strip("`"))
        of_file = [result for test, result in results.items() if test.startswith(f"{file}::")]
        if of_file:
            minutes, result = summary(of_file)
            cells[3] = minutes if len(of_file) >= int(cells[2]) else cells[3]
            lines[number] = f"| {' | '.join([*cells[:4], result])} |\n"
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(), newest(RESULTS)))
