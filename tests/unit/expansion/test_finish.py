"""A run gets the answer about its end as often as it asks, also after it has given its lease back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.operations.expansion import finish as operation
from kafka_rescale.operations.expansion.finish import finish
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.situations import situation
from tests.support.small_application import application

RUN, ANOTHER = "expand_shop/1", "expand_shop/2"
PLAN = situation().plan


class Control:
    """The control topic of a verified expansion."""

    def __init__(self) -> None:
        journal = Journal(plan=PLAN, phase=Phase.VERIFIED, owner=RUN, timings={"total": 7.0})
        lease = Lease(owner=RUN, epoch=1, target=8, expires_at_ms=2**62)
        copied = JobResult(
            job="restore/1", run=RUN, attempt=1, state="done", detail="9 rows of a snapshot", seeded=9
        )
        self.state = ControlState(
            journal=journal, lease=lease, report={"passed": True}, results={copied.job: copied}
        )
        self.written = 0

    def read(self) -> ControlState:
        return self.state

    def update(self, change: Any) -> ControlState:
        self.written += 1
        self.state = self.state.model_copy(update={str(k): v for k, v in change(self.state).items()})
        return self.state


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    control, nobody = Control(), None
    parts: list[Any] = [application("shop"), nobody, SimpleNamespace(), control, SimpleNamespace()]
    monkeypatch.setattr(Rescale, "open", lambda _, __, owner, ___: Rescale(*parts, owner))
    monkeypatch.setattr(operation, "release_compaction", lambda *_: None)
    return control


def ended(owner: str = RUN) -> dict[str, object]:
    connection: Any = None
    return finish(application("shop"), connection, owner=owner)


def test_a_run_whose_answer_was_lost_is_answered_again_and_changes_nothing(control: Control) -> None:
    answer, written = ended(), control.written
    assert control.state.lease is not None
    assert control.state.lease.released
    assert ended() == answer
    assert answer["copies"] == {"restore/1": "9 rows of a snapshot"}
    assert control.written == written


def test_a_run_that_died_before_it_gave_the_lease_back_gives_it_back(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(operation.lease, "release", lambda *_: None)
        ended()
    assert control.state.lease is not None
    assert not control.state.lease.released
    ended()
    assert control.state.lease.released


def test_the_end_of_another_run_is_none_of_its_own(control: Control) -> None:
    ended()
    with pytest.raises(Fenced):
        ended(ANOTHER)


def test_once_another_run_has_begun_the_answer_is_gone(control: Control) -> None:
    ended()
    assert control.state.lease is not None
    taken = control.state.lease.model_copy(update={"owner": ANOTHER, "released": False})
    control.state = control.state.model_copy(update={"lease": taken})
    with pytest.raises(Fenced):
        ended()


@pytest.mark.parametrize("phase", [p for p in Phase if p not in {Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE}])
def test_an_expansion_that_is_not_so_far_is_not_ended(control: Control, phase: Phase) -> None:
    """A person has marked ``cutover`` as success, and perhaps ``verify``: no generation may run."""
    journal = Journal(plan=PLAN, phase=phase, owner=RUN)
    control.state = before = control.state.model_copy(update={"journal": journal})
    with pytest.raises(UnsafeState, match=f"found phase {phase}; expected phase started, .*clear `cutover` with"):
        ended()
    assert control.state == before
    assert control.written == 0


def test_without_a_passed_report_the_lease_is_kept(control: Control) -> None:
    control.state = control.state.model_copy(update={"journal": Journal(plan=PLAN, phase=Phase.STARTED)})
    with pytest.raises(UnsafeState, match="no passed verification report"):
        ended()
    assert control.written == 0
