"""The DataFrame half of the proof: one pass counts. Only if there are violations, more passes look at the store.

Blue is stopped, but its log may still be compacted. A reader may then see a key's oldest record, and miss the next
one, which was removed before the reader came to it: this looks like another order. So violations are believed only
if the next reading finds them in the same records. Nothing is written any more within the ranges that are read. So
a record that the second of two readings sees was still there when the first one ended, and so was every later
record of its key (``spark.verify.live`` says in which order compaction removes records). So the first one has seen
them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_, xor
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify.oracles import Alignment, Entry, KeyFinding, Oracle, finding_of
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import MAX_FINDINGS, LogCount, PartitionContent, StoreReport
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.spark.verify.alignment import SIDES, align
from kafka_rescale.spark.verify.faults import judge
from kafka_rescale.spark.verify.stores import STORE
from kafka_rescale.spark.verify.subscriptions import FIELDS

HASH_MASK = 0x7FFFFFFF

READINGS = 8
"""How often a store is counted at most, until two readings in a row agree."""
AHEAD = 5
"""How many readings the limit of versions lies ahead: two counts that agree, each behind a listing of findings,
take four."""


class Counts(NamedTuple):
    """The counts of a store.

    :param report: without findings.
    :param conditions: the conditions of the oracles that are violated.
    :param violations: a hash of the rows with violations, and of where their records lie.
    """

    report: StoreReport
    conditions: dict[Oracle, Column]
    violations: int


def compare_stores(
    spark: SparkSession,
    kafka: Mapping[str, str],
    pairs: Sequence[StorePair],
    clock_ms: Callable[[], int] = now_ms,
) -> tuple[StoreReport, ...]:
    """Compare some stores in one plan, and return their reports in this order.

    Only counts and at most ``MAX_FINDINGS`` findings per store and oracle come to the driver.

    :param clock_ms: the clock by which the pairs were planned, in ms since the epoch.
    :raises Outage: compaction has changed a store during each of its readings.
    """
    counted = counts_of(judge(align(spark, kafka, pairs), pairs), pairs)
    return tuple(
        _certain(spark, kafka, pair, counts, clock_ms) for pair, counts in zip(pairs, counted, strict=True)
    )


def _certain(
    spark: SparkSession, kafka: Mapping[str, str], pair: StorePair, counts: Counts, clock_ms: Callable[[], int]
) -> StoreReport:
    """Return the report of a store. If it has violations, the store is read again until two counts agree.

    The findings are listed between these two counts. So what they name was there in both. Versions that blue may
    have removed by now are not asked for. Both counts need one limit for that, which lies ahead of them, or else
    versions that age between the readings would let no two of them agree.
    """
    began_ms, limit_ms, readings = pair.planned_ms, 0, 1
    for _ in range(READINGS - 1):
        if counts.report.passed:
            return counts.report
        at_ms = clock_ms()
        if at_ms >= limit_ms:
            limit_ms = at_ms + AHEAD * max(1, (at_ms - (began_ms or at_ms)) // readings)
            pair = pair.at(limit_ms)
        findings = _findings(spark, kafka, pair, counts.conditions)
        (again,) = counts_of(judge(align(spark, kafka, [pair]), [pair]), [pair])
        is_same = (again.report.failures, again.violations) == (counts.report.failures, counts.violations)
        if is_same and (pair.versions_since_ms is None or clock_ms() < limit_ms):
            return again.report.model_copy(update={"findings": findings})
        counts, began_ms, readings = again, at_ms, 2
    if counts.report.passed:
        return counts.report
    raise Outage(
        f"topic {pair.blue.topic!r}",
        found=f"differences that compaction changed during each of {READINGS} comparisons",
        expected="a log that can be read between two compactions",
        remedy="Run it again later: nothing is written there any more, so its compaction comes to an end.",
    )


def counts_of(judged: DataFrame, pairs: Sequence[StorePair]) -> list[Counts]:
    """Return the counts of a comparison.

    :param pairs: the pairs that were judged; the counts are in their order.
    """
    oracles = [o for o in Oracle if o in judged.columns]
    tallies = judged.groupBy(STORE, "source", "target").agg(*_tallies(oracles)).collect()
    of = [[tally for tally in tallies if tally[STORE] == place] for place in range(len(pairs))]
    return [_counts(pair, each, oracles) for pair, each in zip(pairs, of, strict=True)]


def _counts(pair: StorePair, tallies: Sequence[Row], oracles: Sequence[Oracle]) -> Counts:
    complete = _complete_partitions(pair, tallies)
    failures = {o: sum(t[o] for t in tallies) for o in oracles}
    failures[Oracle.DUPLICATES] = sum(t["surplus"] for t in tallies if t["source"] in complete)
    failures = {oracle: count for oracle, count in failures.items() if count}
    duplicate = sf.col("surplus") & sf.col("source").isin(*complete)
    conditions = {o: duplicate if o is Oracle.DUPLICATES else sf.col(o) for o in failures}
    report = StoreReport(
        store=pair.store,
        store_type=pair.store_type,
        blue_topic=pair.blue.topic,
        green_topic=pair.green.topic,
        blue=_log_count("blue", tallies),
        green=_log_count("green", tallies),
        expired=sum(t["expired"] for t in tallies),
        surplus=sum(t["surplus"] for t in tallies),
        partitions=_contents(pair, tallies),
        blue_partitions=tuple(
            sum(t["blue_live"] for t in tallies if t["source"] == p) for p in range(pair.blue.partitions)
        ),
        excused=None if pair.fence is None else sum(t["excused"] for t in tallies),
        failures=failures,
    )
    return Counts(report, conditions, reduce(xor, (t["violations"] or 0 for t in tallies), 0))


def _tallies(oracles: Sequence[Oracle]) -> list[Column]:
    names = ["surplus", "expired", "excused", *oracles]
    counts = [sf.count_if(sf.col(name)).alias(name) for name in names]
    of_sides = (column for side in SIDES for column in _side_tallies(side))
    return [*counts, _violations(oracles).alias("violations"), *of_sides]


def _violations(oracles: Sequence[Oracle]) -> Column:
    """Return a hash of the rows that violate an oracle. It does not depend on their order."""
    # A hash would skip nulls, and so not tell the sides apart.
    at = (sf.coalesce(f"{side}_{field}", sf.lit(-1)) for side in SIDES for field in ("partition", "offset"))
    is_violated = reduce(or_, map(sf.col, oracles))
    return sf.bit_xor(sf.when(is_violated, sf.xxhash64("key", "rank", *at)))


def _side_tallies(side: str) -> list[Column]:
    fields = ("key", *(f"{side}_{f}" for f in ("timestamp", "value_1", "value_2", "headers")))
    content = sf.when(sf.col(f"{side}_live"), sf.xxhash64(*fields))
    halves = (content.bitwiseAND(HASH_MASK), sf.shiftrightunsigned(content, 33))
    return [
        sf.count(f"{side}_offset").alias(f"{side}_records"),
        sf.count_if(sf.col(f"{side}_live")).alias(f"{side}_live"),
        sf.count_if(sf.col(f"{side}_tombstoned")).alias(f"{side}_tombstoned"),
        # Sums of 31-bit halves: independent of order, and without overflow below 2^32 entries.
        *(sf.coalesce(sf.sum(half), sf.lit(0)).alias(f"{side}_hash_{i}") for i, half in enumerate(halves)),
    ]


def _complete_partitions(pair: StorePair, tallies: Sequence[Row]) -> set[int]:
    """Return blue's partitions from which no record has ever been removed.

    If a partition has as many records as offsets since 0, no record is missing. (The reverse is not true:
    transaction markers take offsets as well.) In such partitions green can't have records that blue lacks.
    """
    records = dict.fromkeys(range(pair.blue.partitions), 0)
    for tally in tallies:
        records[tally["source"]] = records.get(tally["source"], 0) + tally["blue_records"]
    return {p for p, (_, end) in pair.blue.ranges.items() if pair.copied and records[p] == end}


def _log_count(side: str, tallies: Sequence[Row]) -> LogCount:
    names = ("records", "live", "tombstoned")
    return LogCount(**{name: sum(t[f"{side}_{name}"] for t in tallies) for name in names})


def _contents(pair: StorePair, tallies: Sequence[Row]) -> tuple[PartitionContent, ...]:
    of = {p: [t for t in tallies if t["target"] == p] for p in range(pair.green.partitions)}
    return tuple(
        PartitionContent(
            partition=p,
            blue_live=sum(t["blue_live"] for t in rows),
            green_live=sum(t["green_live"] for t in rows),
            blue_hash=_hash("blue", rows),
            green_hash=_hash("green", rows),
        )
        for p, rows in of.items()
    )


def _hash(side: str, rows: Sequence[Row]) -> str:
    return "".join(f"{sum(r[f'{side}_hash_{i}'] for r in rows) % 2**32:08x}" for i in range(2))


def violated(conditions: Mapping[Oracle, Column]) -> Column:
    """Return the names of the oracles that a row violates, as an array."""
    return sf.array_compact(sf.array(*(sf.when(c, sf.lit(o.value)) for o, c in conditions.items())))


def _findings(
    spark: SparkSession, kafka: Mapping[str, str], pair: StorePair, conditions: Mapping[Oracle, Column]
) -> tuple[KeyFinding, ...]:
    """Read a store again if it has findings, and return the first of them."""
    if not conditions:
        return ()
    judged = judge(align(spark, kafka, [pair]), [pair])
    # By rank first, so that a key with a long history doesn't hide the other keys.
    first = sf.row_number().over(Window.partitionBy("oracle").orderBy("rank", "key"))
    rows = (
        judged.withColumn("oracle", sf.explode(violated(conditions)))
        .withColumn("number", first)
        .filter(sf.col("number") <= MAX_FINDINGS)
        .collect()
    )
    found = (finding_of(Oracle(row["oracle"]), pair.store, alignment(row)) for row in rows)
    return tuple(sorted(found, key=lambda f: list(conditions).index(f.oracle)))


def alignment(row: Row) -> Alignment:
    """Return a row of the comparison as a value."""
    return Alignment(
        key=bytes(row["key"]),
        rank=row["rank"],
        source=row["source"],
        target=row["target"],
        blue=_entry("blue", row),
        green=_entry("green", row),
        blue_neighbour=row["blue_neighbour"],
        green_neighbour=row["green_neighbour"],
        **{field: row[f"green_{field}"] for field in FIELDS if f"green_{field}" in row},
    )


def _entry(side: str, row: Row) -> Entry | None:
    if row[f"{side}_offset"] is None:
        return None
    return Entry(
        partition=row[f"{side}_partition"],
        offset=row[f"{side}_offset"],
        timestamp_ms=row[f"{side}_timestamp"],
        tombstone=row[f"{side}_tombstone"],
        value=(row[f"{side}_value_1"], row[f"{side}_value_2"]),
        headers=row[f"{side}_headers"],
    )
