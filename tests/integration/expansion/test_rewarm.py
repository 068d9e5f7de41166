"""Shortly before its switch, green restores what was copied since its pre-warming, while the copying goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.expansion.prewarming import AGAIN, gate_group
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.expansion import rewarm

from testbed.processes import wait_until
from tests.support.expansion.faulty import await_result
from tests.support.expansion.prewarmed import GREEN, is_running, log_of, records_between, restored_by
from tests.support.live_expansion import PROMPT, journal_of, live_application

pytestmark = pytest.mark.integration


# In `make test`, test_expansion_control_run.py pre-warms an application and cuts it over, and U/test_rewarm.py has
# the steps of the second restoring.
@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_what_was_copied_while_the_switch_was_waited_for_is_restored_ahead_of_the_pause(
    guarantee: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**PROMPT, "FLIGHTS_THREADS": "1"}
    two = live_application(tmp_path, rate=20, guarantee=guarantee, settings=settings, two_instances=True)
    with two as (stack, expansion):
        # Given a green that was pre-warmed, and copies that have gone on since
        plan, admin = expansion.begin(), ClusterAdmin(expansion.connection)
        expansion.warm(plan)
        targets = [m.target for m in plan.changelogs]
        expansion.prewarm()
        warm, restored = admin.end_offsets(targets), len(log_of(stack))
        job = expansion.submit("catch_up")
        await_result(expansion, "catch_up", "ready")
        assert records_between(expansion, plan, warm, admin.end_offsets(targets))

        # When its switch is near
        monkeypatch.setattr(rewarm, "WORTH_SECONDS", 0.001)
        monkeypatch.setattr(rewarm, "ROUNDS", 1)
        monkeypatch.setattr(rewarm, "is_due", lambda *_: True)
        before = admin.end_offsets(targets)
        rewarm.restore_again(expansion.application, expansion.connection, owner=expansion.owner)

        # Then it has restored these records, and only these, while copying went on
        assert job.poll() is None
        assert admin.end_offsets(targets) != before
        again = restored_by(stack, plan, restored)
        assert again >= records_between(expansion, plan, warm, before)
        assert stack.run("status", GREEN) == 3
        assert admin.committed(gate_group(GREEN)) == admin.committed(GREEN) == {}
        assert journal_of(expansion).prewarmed[AGAIN] > 0

        # and at its start it goes on there: every record was restored once
        expansion.prove_copies()
        expansion.cut_over_beside(job)
        wait_until(lambda: is_running(stack), timeout=60, what=f"{GREEN} to be RUNNING")
        journal = journal_of(expansion)
        assert restored_by(stack, plan, restored) == records_between(expansion, plan, warm, journal.green_ends)
        expansion.assert_verified()
        stack.finish_replay()
        stack.await_equal(GREEN)
