"""Compare stores while blue writes and compacts its log, and the copy goes on. No finding is false.

The comparison reads blue from its log start to positions B of the copy, and green from its log start to the ends
g. Everything that blue had below the fence f is in green below g. Green may also have copies of later records. B
was read after g, so blue's originals of these copies lie below B. A key is excused if blue shows a record of it at
or behind f: the copy of that record may not be there yet, and the next proof covers it. For every other key, a
difference is only a suspicion, for five reasons:

1. Compaction may have removed blue's record because of a newer record behind B, or green's record because of the
   copy of that newer record. Then blue has a record of the key behind B. The log is asked for such records *after*
   the rows with differences have come to the driver (``later_keys`` reads until there is no more: the last record
   of a key can't be removed).
2. The read takes time. If compaction works meanwhile, the reader sees a key's oldest records, but misses later
   records that compaction removes before the reader comes to them. So the keys are read again, until two readings
   in a row have found their records at the same offsets. Compaction cleans a log from its start, and removes all
   older records of a key before it removes a newer record. The records that the first of the two readings has seen
   were still there when the second reading began. So no later record of the key can have been removed before that:
   there is no gap. A key without new records loses records finitely often.
3. A tombstone is itself removed some time after it was first compacted (``delete.retention.ms``). If the
   comparison takes that long, it can't see what blue has deleted behind f. Then only differences count in which
   blue has a record. If there is no such difference, the comparison gives up, and is tried again.
4. While logs are read, versions become so old that compaction need not keep them any longer. So the limit of
   ``VERSIONS`` is taken behind the last reading.
5. ``DUPLICATES`` needs a log of blue from which nothing was removed. That is checked last: a log that is complete
   then was complete before.

Where a record of green lies needs none of this. If that is wrong, no later record and no deletion explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle, finding_of
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import MAX_FINDINGS, StoreReport
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.spark.verify.alignment import align
from kafka_rescale.spark.verify.compare import Counts, alignment, counts_of, violated
from kafka_rescale.spark.verify.faults import judge
from kafka_rescale.spark.verify.paced import PacedReading
from kafka_rescale.spark.verify.source import read_logs

Found = tuple[Oracle, Row]
"""A violation, and the row that has it."""

SUSPECTS = 100_000
"""How many rows with differences come to the driver at most. The newest records of the keys come first."""
READINGS = 8
SETTLED_AT_ONCE = 4
"""How many stores' differences are read again at a time."""


@dataclass(frozen=True)
class BesideBlue:
    """The questions about blue's log while it is compared.

    :param later: takes keys, and returns those that blue has written at or behind the ends of the pair.
    :param lacks_deletions: returns whether deletions behind the fence may have been removed by now.
    """

    later: Callable[[Set[bytes]], Set[bytes]]
    lacks_deletions: Callable[[], bool]


@dataclass(frozen=True)
class Settled:
    """What is left of the differences of a store when those that compaction has made are gone.

    :param found: the differences.
    :param is_cut: whether some were not looked at, because there were more than ``SUSPECTS``.
    :param explained: keys below the fence that were not judged after all, because blue has written them since. The
        counts of the first reading have them.
    """

    found: list[Found]
    is_cut: bool
    explained: Set[bytes]


def prove_stores(
    spark: SparkSession,
    kafka: Mapping[str, str],
    pairs: Sequence[StorePair],
    beside: Sequence[BesideBlue],
    paced: PacedReading | None = None,
) -> tuple[StoreReport, ...]:
    """Compare some stores up to their fences in one plan, and return their reports in this order.

    If a store has more than ``SUSPECTS`` differences, its counts are those of the first ``SUSPECTS``.

    :param pairs: the stores, with fences.
    :param beside: the questions about each pair's log, in the order of the pairs.
    :param paced: slows the reading down; None to read as fast as Spark can.
    :raises Outage: the comparison took too long, or blue changed too fast, to tell.
    """
    counted = counts_of(judge(align(spark, kafka, pairs, paced=paced), pairs), pairs)
    with ThreadPoolExecutor(SETTLED_AT_ONCE) as pool:
        return tuple(pool.map(partial(_certain, spark, kafka, paced), pairs, counted, beside))


def _certain(
    spark: SparkSession,
    kafka: Mapping[str, str],
    paced: PacedReading | None,
    pair: StorePair,
    counts: Counts,
    beside: BesideBlue,
) -> StoreReport:
    report, conditions, _ = counts
    if report.passed:
        return report
    settled = _settled(spark, kafka, paced, pair, conditions, beside)
    found = settled.found
    if any(oracle is Oracle.DUPLICATES for oracle, _ in found):
        complete = _complete(spark, kafka, paced, pair)
        found = [(o, row) for o, row in found if o is not Oracle.DUPLICATES or row["source"] in complete]
    found = _still_kept(found, pair.at(now_ms()).versions_since_ms)
    found = _without_lost_deletions(pair, found, beside)
    if settled.is_cut and not found:
        raise _undecided(pair, is_cut=True)
    failures = dict(Counter(oracle for oracle, _ in found))
    excused = (report.excused or 0) + len(settled.explained)
    return report.model_copy(update={"excused": excused, "failures": failures, "findings": _first(pair, found)})


def _settled(
    spark: SparkSession,
    kafka: Mapping[str, str],
    paced: PacedReading | None,
    pair: StorePair,
    conditions: Mapping[Oracle, Column],
    beside: BesideBlue,
) -> Settled:
    """Look into the differences until two readings in a row agree.

    :raises Outage: blue changes too fast.
    """
    known: dict[bytes, int] = {}
    certain: list[Found] = []
    explained: set[bytes] = set()
    is_cut = False
    for reading in range(READINGS):
        keys = spark.createDataFrame([(key,) for key in known], "key binary") if reading else None
        rows = _suspects(judge(align(spark, kafka, [pair], keys, paced), [pair]), conditions)
        # The readings behind a cut one look only at its keys.
        is_cut = is_cut or len(rows) == SUSPECTS
        later = beside.later({bytes(row["key"]) for row in rows})
        certain += [found for found in _found(rows, later) if _is_certain(*found)]
        explained |= {bytes(row["key"]) for row in rows if not row["touched"]} & later
        rows = [row for row in rows if bytes(row["key"]) not in later]
        shapes = {bytes(row["key"]): int(row["shape"]) for row in rows}
        if all(known.get(key) == shape for key, shape in shapes.items()):
            return Settled([*certain, *_found(rows, shapes.keys())], is_cut, explained)
        known = shapes
    raise _undecided(pair, is_cut=False)


def _undecided(pair: StorePair, *, is_cut: bool) -> Outage:
    return Outage(
        f"topic {pair.blue.topic!r}",
        found=f"more than {SUSPECTS:,} differences, and no mistake among the first of them"
        if is_cut
        else f"keys that were compacted during each of {READINGS} comparisons",
        expected="a log that can be read between two compactions",
        # Not a longer min.compaction.lag.ms: versions that are gone would count as missing then.
        remedy="Prove at a quieter time, or set min.cleanable.dirty.ratio of the topic to 1 until the expansion "
        "ends: brokers compact it less often then.",
    )


def _suspects(judged: DataFrame, conditions: Mapping[Oracle, Column]) -> list[Row]:
    with_oracles = judged.withColumn("oracles", violated(conditions)).filter(sf.size("oracles") > 0)
    rows: list[Row] = with_oracles.orderBy("rank", "key").limit(SUSPECTS).collect()
    return rows


def _found(rows: Iterable[Row], keys: Set[bytes]) -> list[Found]:
    return [(Oracle(oracle), row) for row in rows if bytes(row["key"]) in keys for oracle in row["oracles"]]


def _is_certain(oracle: Oracle, row: Row) -> bool:
    """Return whether nothing that blue has written later explains a difference.

    A record of green that lies where no record of its key may be stays there when the key is written again. In
    blue, an earlier growth in place may have left such a record, and a later deletion buries it.
    """
    if oracle is Oracle.ONE_PARTITION:
        return row["green_neighbour"] is not None and bool(row["green_neighbour"] != row["green_partition"])
    return oracle is Oracle.PLACEMENT


def _complete(
    spark: SparkSession, kafka: Mapping[str, str], paced: PacedReading | None, pair: StorePair
) -> set[int]:
    blue = read_logs(spark, kafka, [pair], paced).filter(~sf.col("is_green"))
    counts = {row["partition"]: row["count"] for row in blue.groupBy("partition").count().collect()}
    return {p for p, (_, end) in pair.blue.ranges.items() if counts.get(p, 0) == end}


def _without_lost_deletions(pair: StorePair, found: Sequence[Found], beside: BesideBlue) -> list[Found]:
    """Leave out keys that blue may have deleted behind the fence.

    :raises Outage: no other keys are left, so that no difference is certain.
    """
    certain = [(o, row) for o, row in found if row["blue_offset"] is not None or _is_certain(o, row)]
    if len(certain) == len(found) or not beside.lacks_deletions():
        return list(found)
    if certain:
        return certain
    raise Outage(
        f"topic {pair.blue.topic!r}",
        found="a comparison that took longer than deletions are kept",
        expected="a comparison that ends within delete.retention.ms",
        remedy="Give Spark more cores. Or roll back, raise delete.retention.ms of the topic, and trigger again: a "
        "larger value protects only a proof that begins after it.",
    )


def _first(pair: StorePair, found: Sequence[Found]) -> tuple[KeyFinding, ...]:
    listed: dict[Oracle, list[Row]] = {}
    for oracle, row in found:
        listed.setdefault(oracle, []).append(row)
    return tuple(
        finding_of(oracle, pair.store, alignment(row))
        for oracle, rows in listed.items()
        for row in rows[:MAX_FINDINGS]
    )


def _still_kept(found: Sequence[Found], since_ms: int | None) -> list[Found]:
    """Leave out missing versions that compaction may have removed by now.

    :param since_ms: ``StorePair.versions_since_ms`` behind the last reading.
    """

    def is_kept(oracle: Oracle, row: Row) -> bool:
        if since_ms is None or oracle is not Oracle.VERSIONS:
            return True
        timestamp = row["green_timestamp"] if row["blue_timestamp"] is None else row["blue_timestamp"]
        return bool(timestamp >= since_ms)

    return [each for each in found if is_kept(*each)]
