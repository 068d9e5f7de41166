"""A new generation that is killed within its transactions has lost nothing, and `verify` says so.

What is aborted then comes again, partly merged by the caches of the stores. No record of it may be called lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.operations.verify.aborted import look_for_aborted

from testbed.processes import wait_until
from tests.support.kills import killed, processes_with
from tests.support.live_expansion import journal_of, live_application

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GREEN = "flights-g2"
KILLS = 6


def test_a_killed_generation_has_aborted_and_lost_nothing(tmp_path: Path) -> None:
    # It flushes and commits all the time, and starts as soon as it was killed. So transactions are cut within.
    settings = {"FLIGHTS_OPTIONS": "--commit-interval-ms 2000"}
    with live_application(tmp_path, rate=12, guarantee="exactly_once_v2", settings=settings) as (stack, expansion):
        expansion.follow(expansion.begin(), before="verify")
        for _ in range(KILLS):
            before = stack.sent()
            wait_until(lambda sent=before: stack.sent() > sent, timeout=60, what="further flights")
            assert killed(processes_with("java", str(tmp_path), GREEN))
            assert stack.run("start", GREEN) == 0
        found = look_for_aborted(expansion.connection, journal_of(expansion))
        print(f"aborted: {found.model_dump()}")
        assert sum(each.records for each in found.topics) > 0
        assert (found.lost, found.undecided, found.unprocessed, found.unread) == (0, 0, (), ())
        expansion.assert_verified()
        expansion.finish()
        stack.finish_replay()
        stack.await_equal(GREEN)
