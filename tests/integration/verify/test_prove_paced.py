"""A proof that the control topic limits or pauses takes longer, and finds the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.processes import wait_until
from tests.integration.spark_job_helpers import RUN
from tests.support.changelogs import Record, append, placed
from tests.support.expansion.copied import copy, copy_of_two_stores
from tests.support.expansion.expanded import BEFORE, STORES, Expanded
from tests.support.mutations import Client

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

COUNT, SIZE = 600, 2_000


@pytest.fixture
def copied(client: Client, unique: str) -> Expanded:
    """Two stores and their copies, with more than a megabyte on each side."""
    found = copy_of_two_stores(client, unique)
    many = [Record(b"many-%d" % i, b"x" * SIZE, found.since) for i in range(COUNT)]
    append(found.client, found.topic(found.application, "totals"), placed(many, STORES["totals"], BEFORE))
    copy(found)
    return found


def say(expanded: Expanded, limit: int | None, paused: str = "") -> None:
    word = Instruction(by=paused, at_ms=expanded.since) if paused else None
    expanded.control.update(lambda _: {"pace": Pace(plan=expanded.plan.fingerprint, limit=limit, paused=word)})


def proven(expanded: Expanded, attempt: int) -> tuple[Proof, float]:
    """Prove the copies, and return the proof and how long it took."""
    began = time.monotonic()
    prove(Job("prove", Arguments(expanded.application, RUN, attempt), expanded.connection))
    return Proof.model_validate(expanded.control.read().proof), time.monotonic() - began


def test_a_limit_is_kept_and_the_proof_is_the_same(copied: Expanded) -> None:
    proven(copied, 1)  # From here on, Spark is warm.
    free, quick = proven(copied, 2)
    say(copied, 200_000)
    limited, slow = proven(copied, 3)
    print(f"{quick=:.1f} {slow=:.1f}")
    assert limited.passed
    assert [store.model_dump() for store in limited.stores] == [store.model_dump() for store in free.stores]
    assert slow > 2 * quick
    assert copied.control.read().rates["prove"].limit == 200_000


def test_a_paused_proof_begins_no_part_until_it_is_resumed(copied: Expanded) -> None:
    say(copied, None, paused="ada")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(proven, copied, 1)
        _until(running, lambda: "prove" in copied.control.read().results and copied.control.read().proof_progress)
        time.sleep(3.0)
        assert copied.control.read().proof_progress["done"] == {}
        assert not running.done()
        say(copied, None)
        assert running.result()[0].passed


def _until(running: Future[tuple[Proof, float]], condition: Callable[[], object]) -> None:
    wait_until(lambda: running.done() or condition(), timeout=60, what="the paused proof to report")
