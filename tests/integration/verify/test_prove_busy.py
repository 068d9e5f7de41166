"""Proofs beside a log with overwrites, deletions and compaction: no false finding, and a mistake is found."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.fences import read_fences
from kafka_rescale.operations.verify.proof_parts import ProofParts
from pyspark.sql import SparkSession

from testbed.processes import wait_until
from tests.integration.copy_helpers import changelog, expected_partition, plan_of
from tests.support.changelogs import log_range, record_count
from tests.support.verify.busy_blue import EAGER, busy

pytestmark = pytest.mark.integration


def made(connection: KafkaConnection, name: str) -> Plan:
    plan = plan_of(name, changelog(name, "key-value", 3, 6))
    admin = ClusterAdmin(connection)
    for move in plan.moves:
        for topic, count in ((move.source, move.source_partitions), (move.target, move.target_partitions)):
            admin.ensure_topic(topic, count, 1, {"cleanup.policy": "compact", **EAGER})
    return plan


def proven(spark: SparkSession, connection: KafkaConnection, plan: Plan) -> StoreReport:
    (report,) = ProofParts(connection, Journal(plan=plan), read_fences(connection, plan)).compare(spark)
    return report


def proves(spark: SparkSession, connection: KafkaConnection, plan: Plan, times: int) -> None:
    """Prove again and again, and finally with a mistake in a key that is not written any more."""
    (move,) = plan.changelogs
    with busy(connection, plan) as blues:
        blue = blues[move.store]
        wait_until(lambda: len(blue.retired) > 100, timeout=120, what="keys that are written no more")
        excused, compared = 0, 0
        for number in range(times):
            report = proven(spark, connection, plan)
            assert report.findings == (), (number, report.failures, report.findings)
            excused, compared = excused + (report.excused or 0), compared + report.green.live
        assert excused > 0
        assert compared > 0
        log = log_range(connection.config, move.source)
        assert record_count(connection.config, log) < blue.records / 2, "the log was not compacted"
        (key,) = blue.retired[:1]
        producer = Producer(dict(connection.config))
        target = expected_partition("key-value", key, move.target_partitions)
        producer.produce(move.target, b"another value", key, target)
        producer.flush(30)
        time.sleep(1)
        report = proven(spark, connection, plan)
        assert {f.key for f in report.findings} == {key.hex()}
        assert set(report.failures) <= {Oracle.STATE, Oracle.TOMBSTONES}


# In `make test`, test_prove.py leaves out what is written meanwhile, and test_rolling_proof.py compares beside a
# log that is overwritten and compacted all the time.
@pytest.mark.slow
def test_no_finding_is_false_and_a_mistake_is_found(
    spark: SparkSession, eager: KafkaConnection, unique: str
) -> None:
    proves(spark, eager, made(eager, unique), 6)


@pytest.mark.slow
def test_no_finding_is_false_in_fifty_proofs(spark: SparkSession, eager: KafkaConnection, unique: str) -> None:
    proves(spark, eager, made(eager, unique), 50)
