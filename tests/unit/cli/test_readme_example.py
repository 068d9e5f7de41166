"""The application file in the README is valid."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main

README = (Path(__file__).resolve().parents[3] / "README.md").read_text()
TOPOLOGY = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [totals])
      --> KTABLE-TOSTREAM-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KTABLE-TOSTREAM-0000000002 (stores: [])
      --> KSTREAM-SINK-0000000003
      <-- KSTREAM-AGGREGATE-0000000001
    Sink: KSTREAM-SINK-0000000003 (topic: totals)
      <-- KTABLE-TOSTREAM-0000000002
"""


def test_the_example_is_a_valid_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = re.search(r"```yaml\n( +application_id: order-totals.*?)```", README, re.DOTALL)
    assert example is not None
    file = tmp_path / "order-totals.yaml"
    file.write_text(textwrap.dedent(example[1]))
    (tmp_path / "order-totals.topology.txt").write_text(TOPOLOGY)
    assert main(["validate", str(file)]) == PASSED, capsys.readouterr().err
    assert "8 partitions wanted" in capsys.readouterr().out
