"""Throughput of the proof before the promotion, and of only reading both generations, in alternating order."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.plan.plan import Move, Plan, Stage
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.fences import last_fences, read_fences
from kafka_rescale.kafka.verify.delta import compare_stretch, compared_topics
from kafka_rescale.kafka.verify.stretch import Stretch
from kafka_rescale.operations.verify.proof_parts import ProofParts
from kafka_rescale.spark.jobs.session import READING
from kafka_rescale.spark.verify.source import read_logs
from pyspark.sql import SparkSession

from benchmarks.contestants import copy_worker
from benchmarks.copied_topic import changelog_move, fill
from benchmarks.sizes import AFTER, BEFORE, PROVEN, Sizes
from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT
from testbed.jars import ensure_jars

READ, PROOF, DELTA = "spark reads both", "proof", "delta, in the driver"
STORES, STORE_PARTITIONS, SMALL = 12, 8, 200


def measure_proving(directory: Path, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Compare stores of growing size with their copies. Then compare twelve small stores, for the fixed cost."""
    with EmbeddedBroker(directory / "broker", heap="2g") as broker:
        connection, spark = KafkaConnection(broker.client_config()), _session()
        ProofParts(connection, *_store(connection, "warm-up", 1_000)).compare(spark)
        rows = [_row(spark, connection, sizes.records * share // 10, sizes.repeats, tell) for share in PROVEN]
        fixed = {entries: _fixed(spark, connection, entries, tell) for entries in (0, SMALL)}
        spark.stop()
    return {
        "rows": rows,
        "fixed_seconds": fixed[0],
        "small_seconds": fixed[SMALL],
        "small": SMALL,
        "stores": STORES,
        "partitions": STORE_PARTITIONS,
    }


def _session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = ",".join(str(jar) for jar in sorted(ensure_jars("connector").glob("*.jar")))
    settings = {
        **READING,
        "spark.jars": jars,
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(ROOT / "plugins"),
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def _row(
    spark: SparkSession, connection: KafkaConnection, entries: int, repeats: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    journal, fences = _store(connection, f"proven-{entries}", entries)
    (move,) = journal.plan.changelogs
    stretch, topics = _all_of_it(fences), compared_topics(connection, journal.plan)
    contestants: dict[str, Callable[[], object]] = {
        READ: lambda: _read(spark, connection, move, fences),
        PROOF: lambda: _assert_equal(ProofParts(connection, journal, fences).compare(spark)),
        DELTA: lambda: _assert_equal(compare_stretch(connection, journal.plan, stretch, topics)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for repeat in range(repeats):
        names = list(contestants)
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            began = time.monotonic()
            contestants[name]()
            seconds[name].append(round(time.monotonic() - began, 3))
            pace = 2 * entries / seconds[name][-1]
            tell(f"{entries:,} entries, {name}: {seconds[name][-1]:.2f} s = {pace:,.0f} records/s")
    return {"entries": entries, "seconds": seconds, "median": {n: median(of) for n, of in seconds.items()}}


def _store(connection: KafkaConnection, name: str, entries: int) -> tuple[Journal, Fences]:
    """Fill a changelog, copy it, and return what the proof needs."""
    move, admin = changelog_move(f"{name}-changelog", name), ClusterAdmin(connection)
    for topic, count in ((move.source, BEFORE), (move.target, AFTER)):
        admin.ensure_topic(topic, count, 1, {"cleanup.policy": "compact"})
    fill(connection, move.source, entries)
    plan = _plan(name, [move])
    copy_worker(connection, plan)
    return Journal(plan=plan), _fences(connection, plan)


def _fixed(spark: SparkSession, connection: KafkaConnection, entries: int, tell: Callable[[str], None]) -> float:
    """Compare twelve stores of a few entries, and return how many seconds it takes."""
    journal, fences = _small_stores(connection, entries)
    began = time.monotonic()
    _assert_equal(ProofParts(connection, journal, fences).compare(spark))
    took = round(time.monotonic() - began, 2)
    tell(f"{STORES} stores of {STORE_PARTITIONS} partitions and {entries} entries each: {took} s")
    return took


def _small_stores(connection: KafkaConnection, entries: int) -> tuple[Journal, Fences]:
    moves, admin = [], ClusterAdmin(connection)
    for number in range(STORES):
        name = f"with-{entries}-{number}"
        move = changelog_move(f"{name}-changelog", f"{name}-g2").model_copy(
            update={"store": f"store-{number}", "source_partitions": STORE_PARTITIONS}
        )
        for topic in (move.source, move.target):
            admin.ensure_topic(topic, STORE_PARTITIONS, 1, {"cleanup.policy": "compact"})
        fill(connection, move.source, entries, STORE_PARTITIONS)
        moves.append(move)
    plan = _plan(f"with-{entries}", moves)
    copy_worker(connection, plan)
    return Journal(plan=plan), _fences(connection, plan)


def _fences(connection: KafkaConnection, plan: Plan) -> Fences:
    ends = ClusterAdmin(connection).end_offsets([move.source for move in plan.changelogs])
    return last_fences(connection, plan, ends, read_fences(connection, plan))


def _plan(name: str, moves: Sequence[Move]) -> Plan:
    stage = Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=tuple(moves))
    return Plan(
        application=name, generation=2, blue=name, green=f"{name}-g2", partitions=AFTER, stages=(stage,), inputs=()
    )


def _read(spark: SparkSession, connection: KafkaConnection, move: Move, fences: Fences) -> None:
    """Read and hash both logs, as the proof does before it compares anything."""
    ends = {**fences.blue_ends, **fences.green_ends}
    blue, green = (ComparedLog.of(topic, {}, ends[topic]) for topic in (move.source, move.target))
    pair = StorePair(store=move.store, store_type=move.store_type, blue=blue, green=green)
    read_logs(spark, connection.java(), [pair]).write.format("noop").mode("overwrite").save()


def _all_of_it(fences: Fences) -> Stretch:
    begins = {t: dict.fromkeys(of, 0) for t, of in {**fences.blue_ends, **fences.green_ends}.items()}
    before = fences.model_copy(update={"begun": begins, "fence": begins, "green_begun": begins})
    return Stretch(before, fences, is_last=True)


def _assert_equal(reports: Sequence[Any]) -> None:
    assert all(report.passed for report in reports), [report.failures for report in reports]
