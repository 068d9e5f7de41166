"""The slow suites in pieces: which shard runs which test, and how each test ended.

``make test-slow SHARD=2/6`` loads this module as a plugin of pytest. A shard is a set of whole files. Only a file
of many cases that takes longer than a shard's share of the time is cut into runs of consecutive cases. The minutes
of a file come from the table in docs/development/slow-suites.md. Shards therefore change with the table: update it
after the last shard.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import pytest

from tests.support.house.documents import ROOT, in_its_folder, rows

PAGE = ROOT / "docs" / "development" / "slow-suites.md"
HEADER = "file | "
RESULTS = ROOT / "var" / "slow"
MINUTES_OF_A_CASE = 3.0
"""Assumed per case of a file that has no minutes in the table."""
CUT_FROM = 10
"""A file is cut only if it has at least so many cases. In a smaller file, one test may build on another."""


@dataclass(frozen=True)
class Shard:
    """One of several pieces, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``2/6``.

        :raises ValueError: the text is something else, or there is no such piece.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"SHARD: found {text!r}; expected a piece of several, such as 2/6, from 1/6 to 6/6")
        return cls(int(match[1]), int(match[2]))


def minutes_by_file(page: str) -> dict[str, float]:
    """Return the minutes of each file in the table. An estimate begins with ``~``."""
    found = {}
    for row in rows(page, HEADER):
        if minutes := re.fullmatch(r"~?(\d+(?:\.\d+)?)", row[3]):
            found[in_its_folder(row[0].strip("`"))] = float(minutes[1])
    return found


def shards_of(files: Sequence[str], minutes: Mapping[str, float], shards: int) -> list[int]:
    """Return the shard of each test, from 1 on.

    :param files: the file of each test, in the order in which pytest has collected them.
    :param minutes: how long all tests of a file take together.
    """
    counts = Counter(files)
    cost = {file: minutes.get(file, MINUTES_OF_A_CASE * count) for file, count in counts.items()}
    share = sum(cost.values()) / shards
    pieces = {
        file: min(count, max(1, ceil(cost[file] / share))) if count >= CUT_FROM else 1
        for file, count in counts.items()
    }
    by_cost = sorted(
        ((cost[file] / pieces[file], file, piece) for file in counts for piece in range(pieces[file])),
        reverse=True,
    )
    load = [0.0] * shards
    place: dict[tuple[str, int], int] = {}
    for cost_of_piece, file, piece in by_cost:
        lightest = load.index(min(load))
        load[lightest] += cost_of_piece
        place[file, piece] = lightest + 1
    seen: Counter[str] = Counter()
    result = []
    for file in files:
        result.append(place[file, seen[file] * pieces[file] // counts[file]])
        seen[file] += 1
    return result


@dataclass
class Recorder:
    """Writes one line for each test that has ended, so that a killed run leaves the results so far."""

    file: Path
    commit: str
    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the times of a test's phases. The first phase that did not pass is the outcome of the test."""
        self.seconds[report.nodeid] += report.duration
        if self.outcomes.get(report.nodeid, "passed") == "passed":
            self.outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            line = {
                "test": report.nodeid,
                "outcome": self.outcomes.pop(report.nodeid),
                "seconds": round(self.seconds.pop(report.nodeid), 1),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "commit": self.commit,
            }
            with self.file.open("a") as lines:
                lines.write(json.dumps(line) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what ``make test-slow`` passes."""
    parser.addoption("--shard", default="1/1", help="run this piece of the tests only, such as 2/6")
    parser.addoption("--results", type=Path, default=RESULTS, help="the folder that gets the results")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a piece that does not exist before anything is collected, and begin to record."""
    try:
        shard = Shard.parse(config.getoption("--shard"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    folder: Path = config.getoption("--results")
    folder.mkdir(parents=True, exist_ok=True)
    config.pluginmanager.register(Recorder(folder / f"{shard.number}-of-{shard.of}.jsonl", commit))


# After pytest has left out what `-m slow` and `-k` do not ask for.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this piece."""
    shard = Shard.parse(config.getoption("--shard"))
    files = [item.nodeid.partition("::")[0] for item in items]
    chosen = shards_of(files, minutes_by_file(PAGE.read_text()), shard.of)
    config.hook.pytest_deselected(
        items=[item for item, number in zip(items, chosen, strict=True) if number != shard.number]
    )
    items[:] = [item for item, number in zip(items, chosen, strict=True) if number == shard.number]
