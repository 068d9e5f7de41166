"""Copying deltas in rounds, while blue goes on writing, until every partition is near its end."""

from __future__ import annotations

import time

from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.copy.units import divided
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.stage import StageCopy
from kafka_rescale.spark.jobs.job import Job, say

MAX_ROUNDS = 50
ROUNDS_WITHOUT_GAIN = 3


def warm_up(job: Job) -> None:
    """Copy deltas of a stage until every lag is acceptable; at least one round.

    :raises Outage: the source grows as fast as the copy.
    """
    stage = StageCopy.begin(job)
    if stage is None:
        return
    rounds = [stage.progress.read()]
    while len(rounds) == 1 or not rounds[-1].within(job.arguments.acceptable_lag):
        assert_converging(job.key, rounds)
        rounds.append(_round(job, stage))
        say(f"{job.key} round {len(rounds) - 1}: {rounds[-1]}")
        job.put("running", rounds[-1])
    job.put("done", rounds[-1])


def assert_converging(key: str, rounds: list[Snapshot]) -> None:
    """Give up when the lag has stopped shrinking.

    :param rounds: readings; the first is from before the first round.
    :raises Outage: the lag does not shrink; the error tells the rates in and out.
    """
    recent = rounds[-ROUNDS_WITHOUT_GAIN - 1 :]
    stuck = len(recent) > ROUNDS_WITHOUT_GAIN and min(r.lag for r in recent[1:]) >= recent[0].lag
    # A round that was paused, or rested for a disk, leaves a lag that takes several rounds to shrink.
    stuck = stuck and recent[-1].lag >= recent[-2].lag
    if not stuck and len(rounds) <= MAX_ROUNDS:
        return
    first, last = recent[0], recent[-1]
    seconds = max(last.seconds - first.seconds, 0.001)
    copied = sum(max(p.position, 0) for p in last.partitions) - sum(max(p.position, 0) for p in first.partitions)
    written = sum(p.end for p in last.partitions) - sum(p.end for p in first.partitions)
    raise Outage(
        f"{key}, after {len(rounds) - 1} rounds",
        found=f"a lag of {last.lag:,} that does not shrink: {written / seconds:,.0f} offsets/s come in, "
        f"{copied / seconds:,.0f} offsets/s are copied",
        expected="a copy that is faster than its source",
        remedy="Give Spark more cores, raise the limit of the pace if there is one, wait for a quieter hour, or "
        "raise acceptable_recovery_lag; then run again.",
    )


def _round(job: Job, stage: StageCopy) -> Snapshot:
    lists = divided(stage.units, job.parallelism(job.spark()))
    task = stage.task()
    began = time.monotonic()
    stage.run(job, task, lists)
    say(f"{job.key}: a round of {time.monotonic() - began:.1f} s")
    return stage.progress.read()
