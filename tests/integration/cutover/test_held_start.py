"""A live application that takes half a minute to start. Behind the hold gate, this adds nothing to the pause."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.expansion.prewarming import remark_on
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.expansion.rollback import roll_back

from testbed.expansion import Expansion
from testbed.flights_stack import RUN, FlightsStack
from testbed.processes import wait_until
from tests.support.kills import kill_session
from tests.support.live_expansion import FILE, journal_of, lifecycle_of, live_application, operation_process
from tests.support.verify.spark_of_tests import run_here

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STARTUP = 30
CUTOVER = "cutover.cutover:run_cutover"
SLOW = f"--commit-interval-ms 500 --startup-seconds {STARTUP}"


def killed_while_held(stack: FlightsStack, expansion: Expansion) -> None:
    """Kill a cutover without warning after it has started green behind the hold gate. Blue still runs."""
    process = operation_process(expansion, CUTOVER)
    wait_until(lambda: journal_of(expansion).held, timeout=120, what="the pass")
    wait_until(lambda: stack.run("status", "flights-g2") == 0, timeout=60, what="the held process")
    kill_session(process.pid)
    assert (journal_of(expansion).phase, journal_of(expansion).stop_asked) == (Phase.WARMING, False)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_the_pause_has_nothing_of_a_start_of_half_a_minute_and_without_the_door_all_of_it(
    tmp_path: Path, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_application(tmp_path, rate=8, guarantee=guarantee) as (stack, expansion):
        admin = ClusterAdmin(expansion.connection)
        monkeypatch.setenv("FLIGHTS_OPTIONS", SLOW)
        expansion.begin()
        expansion.warm(journal_of(expansion).plan)
        expansion.prove_copies()
        catch_up = expansion.submit("catch_up")

        killed_while_held(stack, expansion)
        assert roll_back(
            expansion.application, expansion.connection, owner=expansion.owner, reason="a test"
        ).is_done
        assert [stack.run("status", name) for name in ("flights", "flights-g2")] == [0, 3]
        assert (journal_of(expansion).held, admin.committed("flights-g2")) == (0, {})
        assert not admin.describe_group("flights-g2").is_live
        kill_session(catch_up.pid)

        expansion.begin()
        expansion.prove_copies()
        catch_up = expansion.submit("catch_up")
        killed_while_held(stack, expansion)
        held = journal_of(expansion).held
        with_door = expansion.cut_over_beside(catch_up)
        assert journal_of(expansion).held == held, "the next try has gone on with what was held"
        said = remark_on(journal_of(expansion))
        assert "Held at the door" in said
        expansion.assert_verified()
        expansion.finish()

        changed = {"lifecycle": {**lifecycle_of(RUN), "start_held": None}, "partitions": 16}
        again = Expansion.of_file(FILE, stack.bootstrap_servers, tmp_path / "again", changed, runner=run_here)
        try:
            without_door = again.run()
            print(f"{guarantee}: with the door {with_door}; without {without_door}")
            assert f"{without_door['start']:.1f} s of the pause went by" in remark_on(journal_of(again))
            stack.finish_replay()
            stack.await_equal("flights-g3")
        finally:
            stack.stop("flights-g3")
            for process in again.processes:
                kill_session(process.pid)
    assert without_door["start"] > STARTUP
    assert "start" not in with_door
    assert with_door["release"] < STARTUP / 3
    assert with_door["total"] < without_door["total"] - STARTUP / 2
