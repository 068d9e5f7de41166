"""The table of what the KIPs say: every sentence has a test, or is known not to be built."""

from __future__ import annotations

import re

import pytest

from tests.support.documents import ROOT, named_tests, rows

TEXT = (ROOT / "docs" / "runtime-spark.md").read_text()
ORIGINALS = {
    "test_high_availability_assignor.py": 34,
    "test_task_movement.py": 6,
    "test_client_tags.py": 17,
}


@pytest.mark.parametrize("source", ["KIP-287 says", "KIP-663 says", "KIP-708 says", "the talk says"])
def test_every_sentence_has_a_test_or_is_not_built(source: str) -> None:
    found = rows(TEXT, source)
    assert len(found) > 7
    for sentence, shown in found:
        assert named_tests(shown) or shown == "not built", sentence


def test_every_case_of_kafka_streams_is_there_under_its_name() -> None:
    """Its name in snake case begins with ``should``."""
    for file, cases in ORIGINALS.items():
        names = re.findall(r"^def (test_should_\w+)", (ROOT / "tests" / "unit" / file).read_text(), re.MULTILINE)
        assert len(set(names)) == cases, file
        assert f"`U/{file}` ({cases})" in TEXT
