"""Random faults of single brokers at random moments: the result is right, or the old generation runs as before.

Hypothesis draws the schedules. Two of three brokers are alive all the time, and input goes on arriving. A failed
job is tried again, as Airflow does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.operations.expansion.rescale import Rescale

from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from tests.support.broker_faults import ROLES, Faults, Harm, harmed_at
from tests.support.expansion.faulty import (
    assert_ends_verified,
    live_cluster,
    restore_stages,
    start_catch_up,
    verify,
)

pytestmark = pytest.mark.integration
SEEDS, DRAWN = 200, 10
PAUSE = (Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED)
MOMENTS = ("restore", "catch_up", *(phase.value for phase in PAUSE), "verify")
TRIES = 3
HARM = st.tuples(
    st.sampled_from(("kill", "stop", "freeze")),
    st.sampled_from(sorted(ROLES)),
    st.integers(1, 45).map(float),
)


@dataclass(frozen=True)
class Schedule:
    """One expansion, and what is done to brokers meanwhile.

    :param harms: harms by their moment. Each waits until the broker of the harm before it is back.
    """

    guarantee: str
    target: int
    harms: Mapping[str, Harm]


SCHEDULES = st.builds(
    Schedule,
    guarantee=st.sampled_from(("exactly_once_v2", "at_least_once")),
    target=st.sampled_from((8, 6, 5)),
    harms=st.dictionaries(st.sampled_from(MOMENTS), HARM, min_size=2, max_size=5),
)


# In `make test`, the first case of test_broker_faults.py harms three brokers, one after another. Number 38 was
# there, too, until CI had no time for it.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_schedule_of_faults_loses_nothing(seed: int, tmp_path: Path) -> None:
    schedule = schedule_of(seed)
    print(f"SCHEDULE of seed {seed}: {schedule}", flush=True)
    run(schedule, tmp_path)


def schedule_of(seed: int) -> Schedule:
    """Return the schedule of a seed. It is always the same."""
    drawn: list[Schedule] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=DRAWN, phases=[hypothesis.Phase.generate], database=None)
    @hypothesis.given(SCHEDULES)
    def draw(schedule: Schedule) -> None:
        drawn.append(schedule)

    draw()
    # Hypothesis begins with the simplest schedule. Later ones are more complex.
    assert len(drawn) == DRAWN
    return drawn[-1]


def run(schedule: Schedule, directory: Path) -> None:
    """Expand a live application on three brokers, with the harm of a schedule."""
    harms = schedule.harms
    with live_cluster(directory, schedule.guarantee) as (stack, expansion, faults):
        restore_stages(expansion, faults, harms.get("restore"), target=schedule.target, tries=TRIES)
        job = start_catch_up(expansion)
        if "catch_up" in harms:
            faults.harm(*harms["catch_up"], moment="catch_up")
        faults.await_returned()
        with harmed_at(faults, {phase: harms[phase] for phase in PAUSE if phase.value in harms}) as seen:
            try:
                expansion.cut_over_beside(job)
            except Exception as error:
                if Phase.PROMOTED.value in seen:
                    raise
                assert_untouched(stack, expansion, faults, error)
                return
        faults.await_returned()
        assert_ends_verified(stack, expansion, faults, verify(expansion, faults, harms.get("verify"), tries=TRIES))


def assert_untouched(stack: FlightsStack, expansion: Expansion, faults: Faults, error: Exception) -> None:
    """Assert that the old generation runs, and has the results of an application without an expansion."""
    faults.await_returned()
    rescale = Rescale.open(expansion.application, expansion.connection, expansion.owner)
    journal = rescale.journal()
    assert journal.phase is Phase.ROLLED_BACK, (journal.told, error)
    assert rescale.lifecycle.is_running(blue(journal.plan)), error
    stack.finish_replay()
    stack.await_equal(journal.plan.blue)
    print(f"RESULT rolled back, equal; {'; '.join(faults.done)}; because {error}", flush=True)
