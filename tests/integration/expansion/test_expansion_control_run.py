"""A live application that is rescaled ends with the same state and output as one that never was."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.expansion import ROOT, Expansion
from tests.support.control_run import Control, await_output, compared_run, control_run

pytestmark = pytest.mark.integration

TABLE, GLOBAL = ROOT / "applications" / "flights.yaml", ROOT / "tests" / "data" / "flights-global.yaml"


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Control:
    """What the same input makes of an application that is never rescaled."""
    return control_run(tmp_path_factory.mktemp("control"))


# Fewer partitions in each test run, where every DAG and the demo go from 4 to 8; the others by `make test-slow`.
CASES = [
    pytest.param(4, 8, TABLE, "exactly_once_v2", id="4to8-exactly_once_v2", marks=pytest.mark.slow),
    pytest.param(4, 6, TABLE, "at_least_once", id="4to6-at_least_once", marks=pytest.mark.slow),
    pytest.param(8, 4, GLOBAL, "exactly_once_v2", id="8to4-exactly_once_v2"),
    pytest.param(4, 8, TABLE, "at_least_once", id="4to8-at_least_once", marks=pytest.mark.slow),
    pytest.param(4, 6, TABLE, "exactly_once_v2", id="4to6-exactly_once_v2", marks=pytest.mark.slow),
    pytest.param(8, 4, GLOBAL, "at_least_once", id="8to4-at_least_once", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("before", "after", "file", "guarantee"), CASES)
def test_a_rescaled_application_equals_its_control_run(
    before: int, after: int, file: Path, guarantee: str, control: Control, tmp_path: Path
) -> None:
    settings = {"FLIGHTS_OPTIONS": "--planes global", "FLIGHTS_PARTITIONS": str(before)} if file == GLOBAL else {}
    run = compared_run(
        tmp_path,
        control,
        partitions=before,
        guarantee=guarantee,
        rate=12,
        settings=settings,
        generations=("flights", "flights-g2"),
    )
    with run as stack:
        expansion = Expansion.of_file(file, stack.bootstrap_servers, tmp_path / "run", {"partitions": after})
        await_output(expansion)
        print(f"{before}→{after} {guarantee}: {expansion.run()}")
