"""A promotion relies on a proof only if it is about these copies, and they are still what was compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.markdown import proven_markdown
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.promotable import assert_same_topics, compared_before, proven_until, required_proofs
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.core.verify.report import LogCount, StoreReport
from kafka_rescale.core.verify.report_text import render_proof
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.copy import fences
from kafka_rescale.operations.cutover.proven import assert_begun
from kafka_rescale.operations.verify import accept

from tests.support.plans import in_place_plan, stateless_plan
from tests.support.situations import situation
from tests.support.small_application import application
from tests.support.verify.proofs import GREEN_END, fences_of, proof_of, proven, rolling_of, topic_id

JOURNAL = Journal(plan=situation().plan, attempt=2)
ENDS = {m.source: dict.fromkeys(range(m.source_partitions), 7) for m in JOURNAL.plan.changelogs}
STOPPED = JOURNAL.model_copy(update={"captured": Captured(changelog_ends=ENDS)})
AHEAD = {**ENDS, JOURNAL.plan.changelogs[0].source: {0: 4}}
"""Ends that are ahead of the proof, which goes up to 3."""
PROOF = proof_of(JOURNAL)
PROOFS = [PROOF]
TOPICS = list(PROOF.fences.green_topics)
IDS = {t: topic_id(t) for t in TOPICS}
FOUND = KeyFinding(oracle=Oracle.STATE, subject="totals", detail="live in blue, missing in green", key="6b")
STORE = StoreReport(
    store="totals",
    store_type="key-value",
    blue_topic="b",
    green_topic="g",
    blue=LogCount(records=7, live=4),
    green=LogCount(records=6, live=3),
    expired=0,
    surplus=0,
    partitions=(),
    excused=5,
    failures={Oracle.STATE: 1},
    findings=(FOUND,),
)


def recorded(proof: Proof, **changes: Any) -> dict[str, object]:
    """The proof as the control topic has it."""
    return proof.model_copy(update=changes).model_dump(mode="json")


def begins(of: int = 0) -> dict[str, dict[int, int]]:
    return {t: dict.fromkeys(ends, of) for t, ends in PROOF.fences.green_ends.items()}


def test_a_proof_of_these_copies_is_enough() -> None:
    assert required_proofs(JOURNAL, proven(JOURNAL)) == (PROOF, rolling_of(JOURNAL))
    assert required_proofs(STOPPED, proven(STOPPED)) == (PROOF, rolling_of(STOPPED))
    assert_same_topics(JOURNAL, PROOFS, {t: topic_id(t) for t in TOPICS}, begins(), {})


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({}, "no proof of the copies"),
        (recorded(PROOF, plan="another"), "a proof of another plan"),
        (recorded(PROOF, attempt=1), "a proof of attempt 1"),
        (recorded(PROOF, passed=False, stores=(STORE,)), "a proof with 1 violations"),
    ],
)
def test_without_it_nothing_is_promoted(record: dict[str, object], found: str) -> None:
    with pytest.raises(UnsafeState, match=found):
        required_proofs(JOURNAL, proven(JOURNAL, proof=record))


def further(**changes: Any) -> dict[str, object]:
    """The rolling proof as the control topic has it."""
    return rolling_of(STOPPED).model_copy(update=changes).model_dump(mode="json")


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({}, "no comparison of what was written since the proof"),
        (further(plan="another"), "no comparison of what was written since the proof"),
        (further(attempt=1), "no comparison of what was written since the proof"),
        (further(began=AHEAD), "a comparison that has begun behind the proof"),
        (further(is_complete=False), "what blue has written last is not compared"),
        (further(fences=fences_of(JOURNAL)), "what blue has written last is not compared"),
        (further(stores=(STORE,)), "copies of shop: found 1 violations"),
    ],
    ids=["none", "plan", "attempt", "behind", "unfinished", "older", "findings"],
)
def test_what_was_written_since_must_be_compared_up_to_the_last_record(
    record: dict[str, object], found: str
) -> None:
    with pytest.raises(UnsafeState, match=found):
        required_proofs(STOPPED, proven(STOPPED, rolling_proof=record))


def test_before_the_application_is_stopped_the_comparison_may_go_on() -> None:
    ongoing = rolling_of(JOURNAL)
    assert not ongoing.is_complete
    assert proven_until(proven(JOURNAL), JOURNAL) == ongoing
    assert proven_until(proven(JOURNAL, rolling_proof=further(began=AHEAD)), JOURNAL) is None
    assert proven_until(proven(JOURNAL, proof={}), JOURNAL) is None


@pytest.mark.parametrize(
    ("changes", "rolling", "stores"),
    [
        ({}, {}, {"totals"}),
        ({"failures": {Oracle.STATE: 1}}, {}, set()),
        ({}, {"is_complete": False}, set()),
        ({}, {"stores": (STORE,)}, set()),
    ],
    ids=["proven", "a finding", "not up to the end", "a finding since"],
)
def test_what_was_compared_before_the_promotion_need_not_be_compared_again(
    changes: dict[str, Any], rolling: dict[str, Any], stores: set[str]
) -> None:
    store = STORE.model_copy(update={"failures": {}, "findings": (), **changes})
    proof = PROOF.model_copy(update={"stores": (store,)}).concluded(Acceptances())
    state = proven(STOPPED, proof=recorded(proof), rolling_proof=further(**rolling))

    assert set(compared_before(STOPPED, state, IDS, begins(), {})) == stores


@pytest.mark.parametrize("excused", [5, 0])
def test_versioned_stores_are_always_compared_again(excused: int) -> None:
    """The proof does not count all keys that are left out: stretches leave out others (see ``test_delta``)."""
    first, store = STOPPED.plan.changelogs[0], STORE.model_copy(update={"failures": {}, "findings": ()})
    stage = STOPPED.plan.stages[0]
    versioned = tuple(m.model_copy(update={"store_type": "versioned"}) for m in stage.moves)
    plan = STOPPED.plan.model_copy(update={"stages": (stage.model_copy(update={"moves": versioned}),)})
    journal = STOPPED.model_copy(update={"plan": plan})
    proof = proof_of(journal).model_copy(
        update={"stores": (store.model_copy(update={"store": first.store, "excused": excused}),)}
    )
    assert compared_before(journal, proven(journal, proof=recorded(proof)), IDS, begins(), {}) == {}


def test_stretches_add_up_and_keep_their_findings() -> None:
    begun = RollingProof.begun(JOURNAL, fences_of(JOURNAL))
    quiet = STORE.model_copy(update={"failures": {}, "findings": (), "excused": 2})

    found = begun.extended(PROOF.fences, (STORE,), 1.5).extended(PROOF.fences, (quiet,), 1.5)

    assert (found.stretches, found.seconds, found.records, found.violations) == (2, 3.0, 26, 1)
    assert found.stores[0].excused == 2
    assert found.findings == (FOUND,)
    assert "1 violations in what was written since" in found.told
    (name,) = found.unaccepted(Acceptances())
    assert f"--finding {name}" in str(found.refused([name]))
    assert "13 records of both generations, in 1 stretches" in begun.extended(PROOF.fences, (quiet,), 1.0).told


@pytest.mark.parametrize("plan", [in_place_plan(), stateless_plan(Mode.BLUE_GREEN)], ids=["in place", "stateless"])
def test_where_there_are_no_copies_none_is_needed(plan: Any) -> None:
    assert required_proofs(Journal(plan=plan), ControlState()) is None


@pytest.mark.parametrize("present", [{}, {TOPICS[0]: "another id"}])
def test_topics_that_were_made_anew_are_not_those_that_were_proven(present: dict[str, str]) -> None:
    known = {t: topic_id(t) for t in TOPICS[1:]}
    with pytest.raises(UnsafeState, match="was made anew since, or is gone"):
        assert_same_topics(JOURNAL, PROOFS, {**known, **present}, begins(), {})


def test_a_copy_that_was_emptied_since_is_not_the_one_that_was_proven() -> None:
    one = {**begins(), TOPICS[-1]: {**begins()[TOPICS[-1]], 3: GREEN_END}}
    with pytest.raises(UnsafeState, match=r"was emptied since \(partition 3\)"):
        assert_same_topics(JOURNAL, PROOFS, IDS, one, {})
    # If retention deletes a part, the rest is still proven.
    assert_same_topics(JOURNAL, PROOFS, IDS, begins(GREEN_END - 1), {})


def test_what_retention_has_deleted_since_was_compared_nevertheless() -> None:
    """A switch may wait for days. Windows of a store end meanwhile, and retention deletes all that was proven."""
    noted = {"green_restarts": dict.fromkeys(TOPICS, 0)}
    expiring = PROOF.model_copy(update={"fences": PROOF.fences.model_copy(update=noted)})
    gone, never = begins(GREEN_END), dict.fromkeys(TOPICS, 0)

    assert_same_topics(JOURNAL, [expiring], IDS, gone, never)
    for restarted in ({**never, TOPICS[-1]: 1_700_000_000_001}, {}):
        with pytest.raises(UnsafeState, match="was emptied since"):
            assert_same_topics(JOURNAL, [expiring], IDS, gone, restarted)
    with pytest.raises(UnsafeState, match="because its copy was begun anew"):
        assert_same_topics(JOURNAL, [expiring], IDS, begins(), {**never, TOPICS[0]: 1_700_000_000_001})
    with pytest.raises(UnsafeState, match="was made anew since, or is gone"):
        assert_same_topics(JOURNAL, [expiring], {}, gone, never)
    # A proof of an earlier version does not say which copy it was.
    assert "green_restarts" not in PROOF.fences.model_dump()
    with pytest.raises(UnsafeState, match="was emptied since"):
        assert_same_topics(JOURNAL, PROOFS, IDS, gone, never)


def test_before_the_pause_a_copy_that_a_young_broker_hides_is_looked_at_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fences, "restarts_now", lambda *_: {})
    emptied = {**begins(), TOPICS[-1]: {**begins()[TOPICS[-1]], 3: GREEN_END}}
    admin = SimpleNamespace(topic_ids=lambda _: IDS, begin_offsets=lambda _: emptied)
    admin.existing_topics = dict.fromkeys
    rescale: Any = SimpleNamespace(admin=admin, control=SimpleNamespace(read=lambda: proven(JOURNAL)))
    with pytest.raises(UnsafeState, match=r"was emptied since \(partition 3\)"):
        assert_begun(rescale, JOURNAL)


def test_a_record_that_was_deleted_from_a_compacted_topic_is_missed() -> None:
    """Compaction never moves a log start. If brokers may also delete, retention can explain the missing record."""
    fences = PROOF.fences.model_copy(update={"green_compacted": tuple(TOPICS[1:])})
    compacted = [PROOF.model_copy(update={"fences": fences})]
    assert_same_topics(JOURNAL, compacted, IDS, {**begins(), TOPICS[0]: begins(1)[TOPICS[0]]}, {})
    one = {**begins(), TOPICS[-1]: {**begins()[TOPICS[-1]], 3: 2}}
    with pytest.raises(
        UnsafeState, match=rf"were deleted from topic '{TOPICS[-1]}' since \(partition 3, 0 to 1\)"
    ):
        assert_same_topics(JOURNAL, compacted, IDS, one, {})


def test_a_partition_that_was_empty_may_stay_so() -> None:
    fences = PROOF.fences.model_copy(update={"green_begins": begins(GREEN_END)})
    assert fences.lost({t: topic_id(t) for t in TOPICS}, begins(GREEN_END), {}) == ""


def test_findings_fail_it_until_each_is_accepted_by_its_name() -> None:
    found = PROOF.model_copy(update={"stores": (STORE,)})
    failed = found.concluded(Acceptances())
    (name,) = failed.unaccepted
    assert not failed.passed
    assert f"finding {name}" in render_proof(failed)
    assert "totals key 0x6b (state: live in blue, missing in green)" in str(failed.refused(failed.unaccepted))
    assert f"--finding {name}" in str(failed.refused(failed.unaccepted))

    said = {"records": 1, "by": "ada", "at_ms": 0, "reason": "known"}
    accepted = Acceptances(accepted=(Acceptance(plan=PROOF.plan, finding=name, **said),))  # type: ignore[arg-type]
    passed = found.concluded(accepted)
    assert (passed.passed, [a.finding for a in passed.acceptances]) == (True, [name])
    other = STORE.model_copy(update={"findings": (FOUND.model_copy(update={"key": "6c"}),)})
    assert not found.model_copy(update={"stores": (other,)}).concluded(accepted).passed


def test_the_name_of_a_finding_does_not_change_with_what_blue_writes_meanwhile() -> None:
    later = STORE.model_copy(update={"blue": LogCount(records=9, live=5), "excused": 7})
    assert later.finding == STORE.finding


def test_people_are_told_what_is_proven_and_how_old_that_is() -> None:
    passed = PROOF.model_copy(update={"stores": (STORE.model_copy(update={"failures": {}, "findings": ()}),)})
    assert passed.told == (
        "3 entries of 1 stores are the same in both generations as of 2023-11-14T22:13:20+00:00; "
        "5 keys written since were left out"
    )
    result = {"detail": passed.told, "as_of_ms": passed.fences.as_of_ms, "seconds": 12.4}
    assert "proven 61 s ago**, in 12 s: 3 entries" in proven_markdown(
        result, passed.fences.as_of_ms / 1000 + 61, ()
    )
    assert proven_markdown({}, 0, ()) == ""
    assert is_of(recorded(passed), JOURNAL)
    assert not is_of({}, JOURNAL)


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase.WARMING, "If the run has failed, trigger the expansion again"),
        (Phase.ROLLED_BACK, "If the run has failed, trigger the expansion again"),
        (Phase.STARTED, "Now clear the failed task: verify or callback."),
    ],
)
def test_who_accepts_a_finding_is_told_what_runs_again(
    phase: Phase, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed proof has closed its attempt: its cleared task would be refused."""
    state, nobody = ControlState(journal=JOURNAL.model_copy(update={"phase": phase})), None
    monkeypatch.setattr(accept, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: state))
    connection: Any = nobody
    assert accept.next_step(application("shop"), connection).startswith(said)
