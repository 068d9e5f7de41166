"""A live application that is rescaled ends with the same state and output as an application that never was."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.application.lifecycles import STARTS

from testbed.expansion import ROOT, Expansion
from tests.support.control_run import Control, await_output, compared_run, control_run
from tests.support.expansion.prewarmed import pre_warm_and_cut_over
from tests.support.live_expansion import lifecycle_of
from tests.support.verify.spark_of_tests import run_here

pytestmark = pytest.mark.integration

TABLE, GLOBAL = ROOT / "applications" / "flights.yaml", ROOT / "tests" / "data" / "flights-global.yaml"


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Control:
    """The result of an application that processes the same input and is never rescaled."""
    return control_run(tmp_path_factory.mktemp("control"))


# `make test` goes from 8 to 4 here, as every DAG and the demo go from 4 to 8. `make test-slow` runs all cases.
QUICK = "8to4-exactly_once_v2"
CASES = [
    pytest.param(
        *case,
        id="{}to{}-{}".format(*case),
        marks=[] if "{}to{}-{}".format(*case) == QUICK else [pytest.mark.slow],
    )
    for case in (
        (4, 8, "exactly_once_v2"),
        (4, 6, "at_least_once"),
        (8, 4, "exactly_once_v2"),
        (4, 8, "at_least_once"),
        (4, 6, "exactly_once_v2"),
        (8, 4, "at_least_once"),
    )
]


@pytest.mark.parametrize(("before", "after", "guarantee"), CASES)
def test_a_rescaled_application_equals_its_control_run(
    before: int, after: int, guarantee: str, control: Control, tmp_path: Path
) -> None:
    file = GLOBAL if after < before else TABLE
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
        lifecycle = lifecycle_of(stack.program)
        changes = {
            "partitions": after,
            "lifecycle": told_its_count(lifecycle) if file == GLOBAL else lifecycle,
        }
        expansion = Expansion.of_file(file, stack.bootstrap_servers, tmp_path / "run", changes, runner=run_here)
        await_output(expansion)
        pre_warm_and_cut_over(stack, expansion)
        expansion.assert_verified()
        expansion.finish()
        assert_kept(expansion, before, after)
        print(f"{before}→{after} {guarantee}: {expansion.timings}")


def assert_kept(expansion: Expansion, before: int, after: int) -> None:
    """Assert that the history has what this expansion copied and proved, and what was predicted for it."""
    (past,) = expansion.state().history.values()
    assert (past.outcome, past.before, past.after) == ("complete", before, after)
    assert past.timings == expansion.timings
    assert (past.proven.passed, past.proven.verified, past.proven.accepted) == (True, True, 0)
    assert past.proven.entries > 0
    records, seconds = past.restored
    assert min(records, seconds) > 0
    assert past.predicted is not None
    assert past.predicted.records is not None
    assert past.predicted.records > 0
    assert past.predicted.copied_bytes is not None
    assert past.predicted.copied_bytes > 0
    assert past.predicted.copy_seconds is None


def told_its_count(lifecycle: dict[str, str]) -> dict[str, str]:
    """Return a lifecycle whose start commands tell the application its partitions."""
    counted = {name: f"env FLIGHTS_PARTITIONS={{partitions}} {lifecycle[name]}" for name in STARTS}
    return {**lifecycle, **counted}
