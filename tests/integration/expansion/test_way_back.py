"""The way back after the promotion: the next expansion has the old count as its target, and loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until
from tests.support.control_run import STORES, await_output, compared_run, control_run

pytestmark = pytest.mark.integration

FILE = ROOT / "tests" / "data" / "flights-global.yaml"
GENERATIONS = ("flights", "flights-g2", "flights-g3")
INTERNAL = ("by-aircraft-repartition", "by-airport-repartition", *(f"{store}-changelog" for store in STORES))
EXTERNAL = ("flights", "aircraft-totals-output", "aircraft-sessions-output", "airport-hourly-output")


@pytest.mark.slow
def test_four_to_eight_and_back_to_the_declared_four_equals_a_control_run(tmp_path: Path) -> None:
    control = control_run(tmp_path / "control")
    run = compared_run(
        tmp_path,
        control,
        rate=4,
        settings={"FLIGHTS_OPTIONS": "--planes global", "FLIGHTS_PARTITIONS": "4"},
        generations=GENERATIONS,
    )
    with run as stack:
        there = Expansion.of_file(FILE, stack.bootstrap_servers, tmp_path / "there", {"partitions": 8})
        admin = ClusterAdmin(there.connection)
        await_output(there)
        external = admin.describe_topics(EXTERNAL)
        timings = [there.run()]
        assert counts(admin, "flights-g2") == {8}
        # Both generations have written by then, so the way back has more to copy than the old generation's state.
        sent = stack.sent()
        stack.await_sent(sent + 100)
        assert stack.run("status", "flights-g2") == 0
        back = Expansion.of_file(FILE, stack.bootstrap_servers, tmp_path / "back")
        timings.append(back.run())
        assert counts(admin, "flights-g3") == {4}
        assert [stack.run("status", name) for name in GENERATIONS] == [3, 3, 0]
        print(f"4→8: {timings[0]}; 8→4: {timings[1]}")
        assert admin.describe_topics(EXTERNAL) == external
        first, second = sorted(back.state().history.values(), key=lambda past: past.ended_ms)
        assert second.predicted is not None
        assert second.predicted.pause == first.timings == timings[0]
        assert second.predicted.copy_seconds is not None
        print(f"copy: {second.predicted.copy_seconds} s predicted, {second.restored} in fact")


def counts(admin: ClusterAdmin, application_id: str) -> set[int]:
    """The partition counts of a generation's internal topics."""
    topics = [f"{application_id}-{name}" for name in INTERNAL]
    wait_until(lambda: len(admin.describe_topics(topics)) == len(topics), timeout=30, what="the internal topics")
    return {description.partitions for description in admin.describe_topics(topics).values()}
