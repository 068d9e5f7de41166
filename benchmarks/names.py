"""The names of parts and contestants in tables and pictures."""

from __future__ import annotations

PART_NAMES = {
    "drain": "drain inputs",
    "quiesce": "stop old generation",
    "prove": "prove it gone",
    "delta": "last delta",
    "delta_proof": "prove the last delta",
    "promote": "promote",
    "grow": "grow inputs",
    "offsets": "offsets",
    "start": "its start, until it joins",
    "release": "what is held joins",
    "restore": "its restore",
    "first_output": "to first output",
    "between": "between the parts",
    "stop": "stop",
    "reset": "reset tool",
    "reprocess": "restart, reprocess",
    "pause": "pause of the expansion",
    "total": "total",
}

RESET_PARTS = ("stop", "grow", "reset", "reprocess")

CONTESTANTS = {
    "copy_worker": "our copy, one process",
    "restore_job": "our restore job (Spark, 2 processes)",
    "plain_loop": "plain consume–produce loop",
    "streams_restore": "Kafka Streams' restore, 2 threads",
}

LEFT_OUT = (
    "One broker, without replication, shares the cores and the page cache with every client; only ratios between "
    "the figures of one run carry over to other machines.",
    "Everything is on the loopback interface: no latency, no bandwidth limit, no encryption.",
    "Kafka Streams' restore writes to its local store and not to Kafka: it does other work than a copy, and is "
    "here because the application has to do it after every rescale.",
    "The plain loop has neither transactions nor positions, fences nobody, and would misplace the keys of window "
    "and session stores: it is the ceiling of one Python process, not a way to copy state.",
    "The copied changelog has one record per key: no compaction, no deletions, no headers.",
    "The application commits every second (`commit.interval.ms`); with its default of 30 s, output can't be seen "
    "any finer.",
    "Of the reset, only what machines do is counted: nobody has to notice, to decide or to type anything. It "
    "needs all of the input to be there still, and consumers see every old result again.",
    "Airflow's scheduling between the steps is left out; within the pause there is one task only.",
)
