"""What an attempt that was rolled back has left in the control topic is not shown as the next attempt's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.pace import Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.page.copy_estimate import work_of
from kafka_rescale.core.verify.kept import past_of
from kafka_rescale.kafka.control import journal_store

from tests.support.page.page_contents import NOW_MS, World, control, copying

NEXT = "expand_orders/the-next-run"
OTHERS = ("bridge", "watch", "snapshot/2026-01-01")
"""Results of other DAGs: a rollback of the expansion does not end what they say."""


def left_by(world: World, phase: Phase) -> ControlState:
    """What an attempt has left whose last lag gate has held until its hour was over."""
    of = [("lag_gate/2", "holding"), ("catch_up", "ready"), ("prove", "done"), *((job, "done") for job in OTHERS)]
    more = [JobResult(job=job, run="", attempt=1, state=state) for job, state in of]
    found = control(world, phase, [*world.control.results.values(), *more])
    rates = {job: Rate(run="r", attempt=1) for job in ("catch_up", "bridge")}
    return found.model_copy(update={"rates": rates, "lease": None})


def begun(state: ControlState, world: World) -> ControlState:
    """The control state after a run has begun, or goes on."""
    written: list[ControlState] = []

    def update(change: Any) -> ControlState:
        changes = {str(key): value for key, value in change(state).items()}
        kept = {
            field: {job: each for job, each in getattr(state, field).items() if f"{concern}/{job}" not in changes}
            for field, concern in (("results", "result"), ("rates", "rate"))
        }
        written.append(state.model_copy(update={"journal": changes["journal"], **kept}))
        return written[0]

    topic: Any = SimpleNamespace(application="orders", update=update)
    journal_store.begin(topic, world.plan, NEXT, now_ms=NOW_MS)
    return written[0]


def test_the_next_attempt_has_no_results_and_no_rates_of_the_one_before() -> None:
    world = copying("orders")
    found = begun(left_by(world, Phase.ROLLED_BACK), world)
    assert found.journal is not None
    assert (found.journal.attempt, found.results.keys(), found.rates.keys()) == (2, set(OTHERS), {"bridge"})
    assert work_of(found).step == "expand"
    past = past_of(found, found.journal, Phase.ROLLED_BACK, NOW_MS)
    assert [job.job for job in past.jobs] == ["bridge"]


@pytest.mark.parametrize("phase", [Phase.WARMING, Phase.PROMOTED])
def test_an_attempt_that_goes_on_in_another_run_keeps_them(phase: Phase) -> None:
    world = copying("orders")
    found = begun(left := left_by(world, phase), world)
    assert (found.results, found.rates) == (left.results, left.rates)


def test_a_gate_that_held_in_an_earlier_run_is_not_what_the_present_run_does() -> None:
    world = copying("orders")
    found = begun(left_by(world, Phase.WARMING), world)
    assert work_of(found).step == "expand"
    again = found.results["restore/1"].model_copy(update={"run": NEXT, "state": "running"})
    work = work_of(found.model_copy(update={"results": {**found.results, again.job: again}}))
    assert (work.step, work.stages) == ("restore", (1,))
