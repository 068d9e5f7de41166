"""What a promotion records for later: since when green runs, what ran before, where copies begin."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.cutover import cutover, first_output, promotion
from kafka_rescale.operations.cutover.cutover import Cutover
from kafka_rescale.operations.expansion.rescale import LEASE_MS, Rescale

from tests.support.situations import situation
from tests.support.verify.proofs import proof_of, proven

OWNER = "expand/run-1"
PLAN = situation().plan
REPARTITIONS = {m.target for m in PLAN.repartitions}
COPY = PLAN.changelogs[0].target


class Control:
    """The control topic as a value."""

    def __init__(self, journal: Journal, before: Generations | None) -> None:
        lease = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=2**60)
        self.state = proven(journal, lease=lease, generations=before)

    def read(self) -> ControlState:
        return self.state

    def update(self, change: Any) -> ControlState:
        self.state = self.state.model_copy(update=dict(change(self.state)))
        return self.state


class Admin:
    """Every topic ends at 9 and begins at 0, except a topic that was emptied and copied anew."""

    def begin_offsets(self, topics: Iterable[str]) -> PartitionOffsets:
        return {t: {0: 5 if t == COPY or t in REPARTITIONS else 0, 1: 0} for t in topics}

    def end_offsets(self, topics: Iterable[str], *, if_present: bool = False) -> PartitionOffsets:
        return {t: {0: 9, 1: 9} for t in topics}


def promoted(
    monkeypatch: pytest.MonkeyPatch, before: Generations | None, proof: dict[str, object] | None = None
) -> ControlState:
    """Promote, without the checks of running applications and of held producers."""
    captured = Captured(committed={i.topic: {0: 3} for i in PLAN.inputs})
    journal = Journal(plan=PLAN, phase=Phase.CAUGHT_UP, captured=captured, pause_started_ms=2**45)
    control = Control(journal, before)
    control.state = control.state.model_copy(update={} if proof is None else {"proof": proof})
    monkeypatch.setattr(promotion, "wait_until_complete", lambda admin, topics, **_: admin.end_offsets(topics))
    monkeypatch.setattr(first_output, "topology_of", lambda _: SimpleNamespace(outputs=("out", "undeclared")))
    monkeypatch.setattr(cutover, "assert_promotable", _nothing)
    monkeypatch.setattr(cutover, "assert_proven", _nothing)
    application: Any = SimpleNamespace(
        max_pause_seconds=2**40,
        application_id=PLAN.application,
        source_patterns={},
        outputs=(SimpleNamespace(topic="out"),),
    )
    nothing: Any = None
    rescale = Rescale(application, nothing, Admin(), control, nothing, OWNER)  # type: ignore[arg-type]
    Cutover(rescale)._promote(journal)
    return control.state


def _nothing(*_: object) -> None:
    return None


def test_the_lease_of_whoever_changes_the_journal_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = now_ms()
    state = promoted(monkeypatch, None)
    assert state.lease is not None
    assert before + LEASE_MS <= state.lease.expires_at_ms <= now_ms() + LEASE_MS


@pytest.mark.parametrize(("attempt", "passed"), [(None, True), (2, True), (1, False)])
def test_the_promotions_own_transaction_requires_the_proof(
    monkeypatch: pytest.MonkeyPatch, attempt: int | None, passed: bool
) -> None:
    """Another proof may have been written since the check. Attempt 1 promotes."""
    known = proof_of(Journal(plan=PLAN, attempt=attempt or 1)).model_copy(update={"passed": passed})
    record = known.model_dump(mode="json") if attempt else {}
    with pytest.raises(UnsafeState, match="expected a proof that has passed"):
        promoted(monkeypatch, None, record)


def test_the_generations_say_since_when_and_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    state = promoted(monkeypatch, None)
    assert state.journal is not None
    assert state.generations is not None
    assert (state.journal.phase, state.generations.running) == (Phase.PROMOTED, PLAN.green)
    assert state.generations.since_ms == 2**45
    past = state.generations.past
    assert [(p.running, p.generation, p.since_ms, p.until_ms) for p in past] == [(PLAN.blue, 1, 0, 2**45)]
    assert past[0].committed == {i.topic: {0: 3} for i in PLAN.inputs}
    assert past[0].ends == {}
    assert state.journal.output_ends == {"out": {0: 9, 1: 9}, "undeclared": {0: 9, 1: 9}}


def test_the_counts_that_inputs_grow_from_stay_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that were processed before are placed by these counts, as long as they are kept."""
    grown = {i.topic: (4,) for i in PLAN.inputs}
    first = promoted(monkeypatch, None).generations
    assert first is not None
    assert first.grown_inputs == grown
    earlier = Generations(running=PLAN.blue, grown_inputs={PLAN.inputs[0].topic: (2, 3), "another": (1,)})
    then = promoted(monkeypatch, earlier).generations
    assert then is not None
    assert then.grown_inputs == {**grown, PLAN.inputs[0].topic: (2, 3, 4), "another": (1,)}
    assert Generations.model_validate_json('{"running": "app"}').grown_inputs == {}


def test_where_a_copy_began_anew_is_remembered_and_repartition_topics_start_at_their_log_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    earlier = Generations(running=PLAN.blue, begins={"another-changelog": {3: 4}}, since_ms=7, generation=3)
    state = promoted(monkeypatch, earlier)
    assert state.journal is not None
    assert state.generations is not None
    assert state.generations.begins == {"another-changelog": {3: 4}, COPY: {0: 5}}
    assert [(p.generation, p.since_ms) for p in state.generations.past] == [(3, 7)]
    starts = state.journal.green_start
    assert {t: starts[t] for t in REPARTITIONS} == {t: {0: 5, 1: 0} for t in REPARTITIONS}
