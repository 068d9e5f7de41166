"""What a command prints into a pipe can be searched."""

from __future__ import annotations

import pytest
from kafka_rescale.cli.output import Document, Rows, show

STORE = "KSTREAM-AGGREGATE-STATE-STORE-0000000012-changelog"
NAMES = [f"customer-order-totals-by-region{generation}-{STORE}" for generation in ("", "-g2")]


def test_a_name_stays_whole_outside_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    header = ("stage", "what", "from", "to", "now", "then")
    row = ("state", "move changelog, zstd", *NAMES, 4, 8)
    told = "found no answer of the brokers in time, " * 5
    tables = [
        Rows("Plan", header, [row]),
        Rows(f"Counts of {NAMES[1]}, as sampled", ("partitions",), [(8,)]),
        Rows("Results", ("job", "detail"), [("x", told)]),
    ]
    show(Document({}, tables=tables), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [all(name in line for name in NAMES) for line in lines].count(True) == 1
    assert f"Counts of {NAMES[1]}, as sampled" in lines
    assert sum(told.strip() in line for line in lines) == 1, "one row is one line"
