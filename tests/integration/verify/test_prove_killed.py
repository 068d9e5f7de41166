"""A proof that is killed goes on from the parts that it has noted, and has the same result in the end."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify import parts as core_parts
from kafka_rescale.core.verify.parts import ProofProgress
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.fences import read_fences
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.reset import restart
from kafka_rescale.operations.verify import proof_parts
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job
from pyspark.sql import SparkSession

from testbed.expansion import ROOT
from testbed.processes import wait_until
from tests.integration.spark_job_helpers import RUN
from tests.support.expansion.copied import copy, copy_of_two_stores, journal_of
from tests.support.expansion.expanded import Expanded
from tests.support.kills import kill_session
from tests.support.mutations import Client

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


@pytest.fixture
def copied(client: Client, unique: str) -> Expanded:
    """Two stores, their copies, and a rolling proof that has begun."""
    expanded = copy_of_two_stores(client, unique)
    rolling = RollingProof.begun(journal_of(expanded), read_fences(expanded.connection, expanded.plan))
    expanded.control.update(lambda _: {Concern.ROLLING_PROOF: rolling})
    return expanded


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_parts, "PART_RECORDS", 1)
    monkeypatch.setattr("kafka_rescale.operations.verify.stores.BATCHES_AT_ONCE", 1)


def run(expanded: Expanded, attempt: int) -> None:
    prove(Job("prove", Arguments(expanded.application, RUN, attempt), expanded.connection))


def compared_at_once(spark: SparkSession, expanded: Expanded) -> tuple[StoreReport, ...]:
    fences = read_fences(expanded.connection, expanded.plan)
    return proof_parts.ProofParts(expanded.connection, journal_of(expanded), fences).compare(spark)


def progress_of(expanded: Expanded) -> ProofProgress | None:
    found = expanded.control.read().proof_progress
    return ProofProgress.model_validate(found) if found else None


@pytest.mark.usefixtures("in_parts")
def test_parts_that_are_compared_are_not_compared_again(
    spark: SparkSession, copied: Expanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compared_at_once(spark, copied)
    compared, compare = list[str](), proof_parts.prove_stores

    def until_it_fails(*arguments: Any) -> Any:
        if len(compared) % 3 == 2:
            compared.append("failed")
            raise Outage("a broker", found="nothing", expected="an answer", remedy="Run again.")
        compared.append("compared")
        return compare(*arguments)

    monkeypatch.setattr(proof_parts, "prove_stores", until_it_fails)
    attempt, begun = 0, None
    while not copied.control.read().proof:
        attempt += 1
        try:
            run(copied, attempt)
        except Outage:
            found = progress_of(copied)
            assert found is not None
            assert begun is None or found.fences == begun.fences, "up to the same fence"
            begun = found
            shown = copied.control.read().results["prove"]
            assert all(len(report.partitions) == 2 for report in found.done.values()), "those of the part"
            assert sum(not p.left for p in shown.partitions) >= 2 * len(found.done), "two of green for each part"
            assert not begun.done or " compared" in shown.detail

    assert (compared.count("compared"), compared.count("failed")) == (8, 3), "two stores of four parts each"
    proof = Proof.model_validate(copied.control.read().proof)
    assert proof.stores == whole
    assert proof.passed
    assert progress_of(copied) is None


@pytest.mark.usefixtures("in_parts")
def test_a_part_reads_what_is_written_meanwhile_in_its_own_partitions_only(
    spark: SparkSession, copied: Expanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else as many readers would read the end of the whole topic as there are parts, and each of them again."""
    asked: list[tuple[str, list[int]]] = []
    compare, later = proof_parts.prove_stores, proof_parts.later_keys

    def noted(connection: Any, topic: str, since: dict[int, int], keys: set[bytes]) -> set[bytes]:
        asked.append((topic, sorted(since)))
        return later(connection, topic, since, keys)

    def suspicious(spark: Any, kafka: Any, pairs: Any, beside: Any, paced: Any) -> Any:
        for each in beside:
            each.later({b"a key"})
        return compare(spark, kafka, pairs, beside, paced)

    monkeypatch.setattr(proof_parts, "later_keys", noted)
    monkeypatch.setattr(proof_parts, "prove_stores", suspicious)
    assert all(report.passed for report in compared_at_once(spark, copied))
    sources = {move.source for move in copied.plan.changelogs}
    assert sorted(asked) == sorted((source, [p]) for source in sources for p in range(4))


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    "change", ["emptied", "another attempt", "too old", "nobody compares what is written since"]
)
def test_a_proof_that_can_not_be_gone_on_with_begins_anew(copied: Expanded, change: str) -> None:
    known = proof_parts.ProofParts.begun(copied.connection, journal_of(copied), copied.control.read()).progress
    if change == "too old":
        old = dict.fromkeys(known.fences.copied_as_of_ms, now_ms() - 13 * 3_600_000)
        known = known.model_copy(update={"fences": known.fences.model_copy(update={"copied_as_of_ms": old})})
    if change == "another attempt":
        known = known.model_copy(update={"attempt": 2})
    copied.control.update(lambda _: {Concern.PROOF_PROGRESS: known})
    if change == "emptied":
        restart(copied.connection, copied.plan, copied.plan.changelogs[0], Mark(as_of_ms=now_ms(), attempt=1))
        copy(copied)
    if change.startswith("nobody"):
        copied.control.update(lambda _: {Concern.ROLLING_PROOF: None})

    found = proof_parts.ProofParts.begun(copied.connection, journal_of(copied), copied.control.read())

    assert found.fences.as_of_ms > known.fences.as_of_ms


@pytest.mark.slow
def test_a_driver_that_is_killed_twenty_times_says_the_same(spark: SparkSession, copied: Expanded) -> None:
    whole = compared_at_once(spark, copied)
    draw, attempt, kills, proofs, noted = random.Random(1), 0, 0, 0, set[int]()
    while kills < 20 or not proofs:
        attempt += 1
        kills += is_killed(copied, attempt, parts=draw.choice((0, 1, 1, 2, 3)), seconds=draw.uniform(0, 1))
        noted.add(noted_by(copied))
        if recorded := copied.control.read().proof:
            proof = Proof.model_validate(recorded)
            assert (proof.stores, proof.passed) == (whole, True)
            proofs += 1
            copied.control.update(lambda _: {Concern.PROOF: None})
    assert len(noted - {0}) > 2, "most were killed before their first part"


def noted_by(expanded: Expanded) -> int:
    """Return how many parts are compared, as the next driver will see it."""
    found = progress_of(expanded)
    return len(found.done) if found else 0


def is_killed(expanded: Expanded, attempt: int, parts: int, seconds: float) -> bool:
    """Begin a proof, and kill its driver. Return False if it had ended before.

    :param parts: it is killed after it has noted so many parts.
    :param seconds: it is killed so many seconds later.
    """
    before = noted_by(expanded)

    def is_time() -> bool:
        result = expanded.control.read().results.get("prove")
        is_at_work = result is not None and result.attempt == attempt
        return process.poll() is not None or (is_at_work and noted_by(expanded) >= before + parts)

    with driver(expanded, attempt) as process:
        wait_until(is_time, timeout=300, what=f"the driver to note {parts} parts")
        try:
            assert process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return True
    return False


@contextmanager
def driver(expanded: Expanded, attempt: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a proof in a process of its own. Each of its parts has one partition."""
    script = (
        "import sys, json; from kafka_rescale.core.verify import parts;"
        "from kafka_rescale.operations.verify import stores; parts.PART_RECORDS = stores.BATCHES_AT_ONCE = 1;"
        "from tests.support.verify.spark_of_tests import session_of_tests; session_of_tests();"
        "from kafka_rescale.kafka.client.connection import KafkaConnection;"
        "from kafka_rescale.operations.verify.prove import prove;"
        "from kafka_rescale.spark.jobs.arguments import Arguments; from kafka_rescale.spark.jobs.job import Job;"
        "name, run, attempt, settings = sys.argv[1:];"
        "arguments = Arguments(name, run, int(attempt));"
        "prove(Job('prove', arguments, KafkaConnection(json.loads(settings))))"
    )
    given = [expanded.application, RUN, str(attempt), json.dumps(dict(expanded.client))]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}:{ROOT}"}
    process = subprocess.Popen([sys.executable, "-c", script, *given], env=environment, start_new_session=True)
    try:
        yield process
    finally:
        kill_session(process.pid)
        process.wait()
