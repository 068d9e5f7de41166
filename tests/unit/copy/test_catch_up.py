"""The beginning of catch_up: copies that green may already have restored are not restarted.

And the beginning of every job of an attempt: once the attempt is rolled back, none works, or says that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.copy import catch_up as module
from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.copy.rehearse import rehearse
from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.copy.warm_up import warm_up

from tests.support.expansion.gate_world import PLAN
from tests.support.plans import in_place_plan


class Restarted(Exception):
    """Raised when copies are looked at. Its argument says whether green has restored them."""


@pytest.mark.parametrize("was_warm", ["", PLAN.green])
def test_an_unfinished_pre_warming_counts_too(monkeypatch: pytest.MonkeyPatch, was_warm: str) -> None:
    """A person may have marked the pre-warming task as successful. Then the journal has only `was_warm`."""
    journal = Journal(plan=PLAN, was_warm=was_warm)

    def restart_stale(*_: Any, attempt: int, prewarmed: bool) -> list[str]:
        assert attempt == journal.attempt
        raise Restarted(prewarmed)

    monkeypatch.setattr(module, "restart_stale", restart_stale)
    job: Any = SimpleNamespace(connection=None, journal=lambda: journal, put=lambda *_: None)
    with pytest.raises(Restarted) as asked:
        module.catch_up(job)
    assert asked.value.args == (bool(was_warm),)


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.ROLLED_BACK])
@pytest.mark.parametrize("job", [restore, warm_up, module.catch_up, prove, rehearse, move])
def test_a_job_of_an_attempt_that_was_rolled_back_is_refused(job: Callable[[Any], None], phase: Phase) -> None:
    """Somebody has cleared its task. A restore would copy for hours, for a gate that lets nothing through."""
    plan = in_place_plan() if job in {rehearse, move} else PLAN
    journal = Journal(plan=plan, phase=phase)
    without_brokers: Any = SimpleNamespace(journal=lambda: journal)
    with pytest.raises(UnsafeState, match=f"found {phase}; .*Trigger the expansion again"):
        job(without_brokers)
