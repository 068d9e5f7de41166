"""Prints what an application has not processed, and why. A test that waits for it in vain calls this."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import psutil
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import open_transactions
from kafka_rescale.kafka.client.connection import KafkaConnection

DUMP_SECONDS = 2.0


def print_left_behind(connection: KafkaConnection, application_id: str) -> None:
    """Print the partitions that an application is behind on, open transactions, and the threads of its processes.

    The threads go into the application's own log.
    """
    admin = ClusterAdmin(connection)
    committed = admin.committed(application_id)
    visible = admin.end_offsets(committed)
    last = admin.end_offsets(committed, read_committed=False)
    for topic, partitions in sorted(committed.items()):
        for partition, offset in sorted(partitions.items()):
            ends = visible[topic][partition], last[topic][partition]
            # The marker of a transaction takes an offset. No commit goes past it before a later record.
            if offset + 1 < ends[1]:
                print(f"BEHIND {topic}-{partition}: committed {offset}, visible up to {ends[0]}, end {ends[1]}")
    for each in open_transactions(admin, [t for t in visible if visible[t] != last[t]]):
        print(f"OPEN {each}")
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "java" in " ".join(words[:1]) and application_id in " ".join(words):
            with suppress(psutil.Error):
                process.send_signal(signal.SIGQUIT)
                print(f"THREADS of process {process.pid} are in the log of {application_id}")
    time.sleep(DUMP_SECONDS)
