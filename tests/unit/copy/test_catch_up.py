"""The beginning of catch_up and of the run's other jobs: whose expansion it is, and what is not begun anew.

And once the attempt is rolled back, none of them works, or says that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.copy import catch_up as module
from kafka_rescale.spark.copy.catch_up import catch_up
from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.copy.rehearse import rehearse
from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.copy.warm_up import warm_up
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from tests.support.expansion.gate_world import PLAN
from tests.support.plans import in_place_plan

RUN, ANOTHER = "expand_shop/1", "expand_shop/2"
NOBODY = KafkaConnection({"bootstrap.servers": "localhost:1"})


class Restarted(Exception):
    """Raised when copies are looked at. Its argument says whether green has restored them."""


class Control:
    """The control topic, with the results that jobs have left."""

    def __init__(self, journal: Journal, holder: str) -> None:
        lease = Lease(owner=holder or RUN, epoch=1, target=2, expires_at_ms=0, released=not holder)
        self.state = ControlState(journal=journal, lease=lease)
        self.put: list[tuple[str, str]] = []

    def read(self) -> ControlState:
        return self.state

    def put_result(self, result: JobResult, _: Any) -> None:
        self.put.append((result.job, result.state))


def job_of(name: str, control: Control) -> Job:
    """A job of the first run."""
    job = Job(name, Arguments(application="shop", run=RUN, attempt=3), NOBODY)
    stand_in: Any = control
    job.control = stand_in
    return job


@pytest.fixture(autouse=True)
def _looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def restart_stale(*_: Any, attempt: int, prewarmed: bool) -> list[str]:
        assert attempt == 1
        raise Restarted(prewarmed)

    monkeypatch.setattr(module, "restart_stale", restart_stale)


@pytest.mark.parametrize("was_warm", ["", PLAN.green])
def test_an_unfinished_pre_warming_counts_too(was_warm: str) -> None:
    """A person may have marked the pre-warming task as successful. Then the journal has only `was_warm`."""
    control = Control(Journal(plan=PLAN, was_warm=was_warm), RUN)
    with pytest.raises(Restarted) as asked:
        catch_up(job_of("catch_up", control))
    assert asked.value.args == (bool(was_warm),)
    assert control.put == [("catch_up", "running")]


JOBS = [
    ("catch_up", catch_up, PLAN),
    ("prove", prove, PLAN),
    ("rehearse", rehearse, in_place_plan()),
    ("move", move, in_place_plan()),
]


@pytest.mark.parametrize(("name", "body", "plan"), JOBS)
@pytest.mark.parametrize("phase", Phase)
def test_a_task_of_an_old_run_that_is_cleared_touches_nothing_of_another_run(
    name: str, body: Callable[[Job], None], plan: Any, phase: Phase
) -> None:
    """Even its first result would fence the job of the run that is at work."""
    control = Control(Journal(plan=plan, phase=phase, owner=ANOTHER), ANOTHER)
    with pytest.raises(Fenced, match=f"{name} of {RUN}: found the lease held by {ANOTHER}; .* goes on with it"):
        body(job_of(name, control))
    assert control.put == []


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.ROLLED_BACK])
@pytest.mark.parametrize("job", [restore, warm_up, catch_up, prove, rehearse, move])
def test_a_job_of_an_attempt_that_was_rolled_back_is_refused(job: Callable[[Any], None], phase: Phase) -> None:
    """Somebody has cleared its task. A restore would copy for hours, for a gate that lets nothing through."""
    plan = in_place_plan() if job in {rehearse, move} else PLAN
    journal = Journal(plan=plan, phase=phase)
    without_brokers: Any = SimpleNamespace(own_journal=lambda **_: journal)
    with pytest.raises(UnsafeState, match=f"found {phase}; .*Trigger the expansion again"):
        job(without_brokers)
