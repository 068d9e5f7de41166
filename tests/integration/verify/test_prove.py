"""The proof before the promotion, by the job's own function: it passes right copies, and finds wrong ones."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import Fenced, Outage, UnsafeState
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.promotable import assert_proof
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.reset import restart
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.operations.cutover.proven import assert_begun
from kafka_rescale.operations.verify import proof_parts
from kafka_rescale.operations.verify.accept import accept
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.removal import remove_records
from tests.integration.copy_helpers import ends_of
from tests.integration.spark_job_helpers import RUN
from tests.support.changelogs import Placed, Record, append, placed
from tests.support.expansion.copied import copy, copy_of_two_stores, journal_of
from tests.support.expansion.expanded import AFTER, BEFORE, STORES, Expanded
from tests.support.mutations import Client
from tests.support.small_application import application

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


@pytest.fixture
def copied(client: Client, unique: str) -> Expanded:
    """Two stores, and their copies."""
    return copy_of_two_stores(client, unique)


def proven(expanded: Expanded, attempt: int = 1) -> Proof:
    """Prove the copies, and return the proof in the control topic."""
    prove(Job("prove", Arguments(expanded.application, RUN, attempt), expanded.connection))
    return recorded(expanded)


def recorded(expanded: Expanded) -> Proof:
    return Proof.model_validate(expanded.control.read().proof)


def assert_promotable(expanded: Expanded) -> None:
    """Check what a cutover checks before it stops anything."""
    rescale: Any = SimpleNamespace(control=expanded.control, admin=ClusterAdmin(expanded.connection))
    assert_begun(rescale, journal_of(expanded))


def put_into_green(expanded: Expanded, *records: Placed) -> None:
    """Write wrong records to the copy of ``totals``."""
    append(expanded.client, expanded.topic(expanded.green, "totals"), records)


def test_right_copies_are_proven_and_what_is_not_copied_yet_neither_helps_nor_harms(copied: Expanded) -> None:
    with pytest.raises(UnsafeState, match="no proof of the copies"):
        assert_promotable(copied)

    proof = proven(copied)

    result = copied.control.read().results["prove"]
    assert (proof.passed, proof.entries, proof.excused, proof.attempt) == (True, 42, 0, 1)
    assert assert_proof(journal_of(copied), copied.control.read()) == proof
    assert (result.state, result.detail, result.as_of_ms) == ("done", proof.told, proof.fences.as_of_ms)
    assert_promotable(copied)

    changed = [replace(r, value=b"later") for _, r in copied.blue_records("totals")[:6]]
    append(copied.client, copied.topic(copied.application, "totals"), placed(changed, STORES["totals"], BEFORE))
    later = proven(copied, 2)
    assert (later.passed, later.entries, later.excused) == (True, 42, 0)
    copy(copied)
    assert proven(copied, 3).excused == 0


@pytest.mark.parametrize(
    ("change", "oracle", "shift"),
    [
        ({"value": b"another"}, Oracle.STATE, 0),
        # In `make test`, I/test_verify_mutations has each of these for the same comparison.
        pytest.param({"value": None}, Oracle.STATE, 0, marks=pytest.mark.slow),
        pytest.param({"timestamp": 1_700_000_000_001}, Oracle.STATE, 0, marks=pytest.mark.slow),
        pytest.param({}, Oracle.SEQUENCE, 0, marks=pytest.mark.slow),
        pytest.param({}, Oracle.PLACEMENT, 1, marks=pytest.mark.slow),
        pytest.param({"key": b"nobody's"}, Oracle.TOMBSTONES, 0, marks=pytest.mark.slow),
    ],
    ids=["value", "deletion", "timestamp", "duplicate", "misplaced", "invented"],
)
def test_what_is_wrong_in_a_copy_keeps_it_from_being_promoted(
    copied: Expanded, change: dict[str, Any], oracle: Oracle, shift: int
) -> None:
    _, last = copied.green_records("totals")[-1]
    wrong = replace(last, **change)
    ((home, _),) = placed([wrong], STORES["totals"], AFTER)
    put_into_green(copied, ((home + shift) % AFTER, wrong))

    with pytest.raises(UnsafeState, match=f"key 0x{wrong.key.hex()}"):
        proven(copied)

    proof = recorded(copied)
    assert not proof.passed
    assert oracle in {f.oracle for f in proof.findings if f.key == wrong.key.hex()}
    assert {f.key for f in proof.findings} == {wrong.key.hex()}
    with pytest.raises(UnsafeState, match="a proof with"):
        assert_promotable(copied)


def test_a_lost_record_is_found_and_may_be_accepted_by_its_name(copied: Expanded) -> None:
    # As if the copy had skipped it: in blue, it is before the copy's positions.
    lost = Record(b"lost", b"value", copied.since)
    ((home, _),) = placed([lost], STORES["totals"], BEFORE)
    append(copied.client, copied.topic(copied.application, "totals"), [(home, lost)])
    move = next(m for m in copied.plan.changelogs if m.store == "totals")
    worker = CopyWorker(copied.connection, copied.plan, units_of([move]))
    worker.begin()
    for source, writer in worker.writers.items():
        position = writer.restart
        end = ends_of(copied.connection, move)[source]
        writer.commit_at(worker._consumer, replace(position, offset=end))
    worker.close()

    with pytest.raises(UnsafeState, match="key 0x6c6f7374"):
        proven(copied)

    names = recorded(copied).unaccepted
    accept(application(copied.application), copied.connection, findings=names, by="ada", reason="a test")
    assert proven(copied, 2).passed
    assert_promotable(copied)


def test_a_proof_of_topics_that_were_made_anew_or_emptied_counts_for_nothing(copied: Expanded) -> None:
    proven(copied)
    admin, (totals, sessions) = ClusterAdmin(copied.connection), copied.plan.changelogs
    restart(copied.connection, copied.plan, sessions, Mark(as_of_ms=now_ms(), attempt=1))
    with pytest.raises(UnsafeState, match="was emptied since"):
        assert_promotable(copied)
    copy(copied)
    with pytest.raises(UnsafeState, match="was emptied since"):
        assert_promotable(copied)
    proven(copied, 2)
    assert_promotable(copied)

    admin.delete_topics([totals.target])
    with pytest.raises(UnsafeState, match="was made anew since, or is gone"):
        assert_promotable(copied)
    admin.ensure_topic(totals.target, AFTER, 1, {"cleanup.policy": "compact"})
    with pytest.raises(UnsafeState, match="was made anew since, or is gone"):
        assert_promotable(copied)


def test_a_proof_stands_when_retention_has_deleted_all_that_was_compared(copied: Expanded) -> None:
    """A switch may wait for days, and the windows of a store end meanwhile."""
    proven(copied)
    sessions = copied.plan.changelogs[1]
    admin = ClusterAdmin(copied.connection)
    admin.delete_records(admin.end_offsets([sessions.target]))
    assert_promotable(copied)

    restart(copied.connection, copied.plan, sessions, Mark(as_of_ms=now_ms(), attempt=1))
    for _ in range(2):
        with pytest.raises(UnsafeState, match="was emptied since, because its copy was begun anew"):
            assert_promotable(copied)
        copy(copied)
    proven(copied, 2)
    assert_promotable(copied)


def test_records_that_are_deleted_behind_the_proof_are_missed_and_the_next_proof_names_them(
    copied: Expanded,
) -> None:
    """Brokers only compact this topic, so its log start moves only if a person deletes records."""
    proven(copied)
    totals = copied.topic(copied.green, "totals")
    end = ClusterAdmin(copied.connection).end_offsets([totals])[totals][0]
    remove_records(copied.connection, totals, {0: end - 2})  # the last offset is the marker of a transaction
    with pytest.raises(UnsafeState, match=f"records were deleted from topic '{totals}' since"):
        assert_promotable(copied)
    with pytest.raises(UnsafeState, match=r"key 0x[0-9a-f]+ \(state: live in blue, missing in green\)"):
        proven(copied, 2)


def test_copies_that_are_begun_anew_meanwhile_are_no_finding(
    copied: Expanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = proof_parts.read_fences

    def overtaken(*arguments: Any) -> Any:
        fences = read(*arguments)
        for move in copied.plan.changelogs:
            restart(copied.connection, copied.plan, move, Mark(as_of_ms=now_ms(), attempt=1))
        return fences

    monkeypatch.setattr(proof_parts, "read_fences", overtaken)
    with pytest.raises(Outage):
        proven(copied)
    assert copied.control.read().proof == {}


def test_an_open_transaction_of_the_copy_is_waited_for(copied: Expanded) -> None:
    producer = Producer({**copied.client, "transactional.id": f"{copied.application}-open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(copied.topic(copied.green, "totals"), b"aborted", b"never", 0)
    producer.flush(30)
    began = time.monotonic()
    Timer(3, lambda: producer.abort_transaction(30)).start()
    assert proven(copied).passed
    assert time.monotonic() - began > 3


def test_a_run_without_the_lease_leaves_no_proof(copied: Expanded) -> None:
    job = Job("prove", Arguments(copied.application, "shell/another", 1), copied.connection)
    with pytest.raises(Fenced, match=f"the lease held by {RUN}"):
        prove(job)
    assert copied.control.read().proof == {}
