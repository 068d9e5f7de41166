"""The table of the KIPs' sentences: each sentence has a test, or is known not to be built."""

from __future__ import annotations

import re

import pytest
from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.lags import LATEST_OFFSET
from kafka_rescale.core.assignment.picture import svg

from tests.support.house.documents import ROOT, in_its_folder, named_tests, rows
from tests.support.processing.assignments import client, tasks

TEXT = (ROOT / "docs" / "runtime-spark.md").read_text()
ORIGINALS = {
    "test_high_availability_assignor.py": 34,
    "test_task_movement.py": 6,
    "test_client_tags.py": 17,
}


@pytest.mark.parametrize("source", ["KIP-287 says", "KIP-663 says", "KIP-708 says", "the talk says"])
def test_every_sentence_has_a_test(source: str) -> None:
    found = rows(TEXT, source)
    assert len(found) > 7
    for sentence, shown, _ in found:
        assert named_tests(shown), sentence


def test_every_case_of_kafka_streams_is_there_under_its_name() -> None:
    """The name of such a case in snake case begins with ``should``."""
    for file, cases in ORIGINALS.items():
        names = re.findall(
            r"^def (test_should_\w+)", (ROOT / in_its_folder(f"U/{file}")).read_text(), re.MULTILINE
        )
        assert len(set(names)) == cases, file
        assert f"`U/{file}` ({cases})" in TEXT


def scaled_out() -> Assignment:
    """Two clients with three active tasks and three standbys each, and a client that has just joined."""
    running = {
        "client-1": client("client-1", LATEST_OFFSET, "0_0 0_2 0_4", t0_1=80, t0_3=80, t0_5=80),
        "client-2": client("client-2", LATEST_OFFSET, "0_1 0_3 0_5", t0_0=80, t0_2=80, t0_4=80),
        "client-3": client("client-3"),
    }
    configs = AssignmentConfigs(acceptable_recovery_lag=100, num_standby_replicas=1)
    return assign(tasks("0_0 0_1 0_2 0_3 0_4 0_5", "1_0 1_1 1_2"), list(running.values()), configs)


def test_the_page_shows_an_assignment_and_its_movements_as_they_are() -> None:
    assert rows(TEXT, "task | role") == [list(row) for row in scaled_out().movement_rows()]
    assert (ROOT / "docs" / "pictures" / "assignment.svg").read_text() == svg(scaled_out())


def test_a_picture_has_every_task_of_every_client_and_an_arrow_per_movement() -> None:
    assignment = scaled_out()
    drawn = svg(assignment)
    for has in assignment.clients.values():
        for task in has.all:
            assert drawn.count(f">{task}</text>") == sum(task in c.all for c in assignment.clients.values())
    assert drawn.count("marker-end") == len(assignment.to_come()) == 4
    assert drawn.count("stroke-dasharray") == 2 + 1, "two warm-ups, and the legend"
    assert "&lt;c&gt;" in svg(assign(tasks("0_0"), [client("<c>")], AssignmentConfigs()))
