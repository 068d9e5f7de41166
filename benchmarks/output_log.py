"""What the log of a topic says about its records: which transaction each belonged to, and how that one ended.

`python -m benchmarks.output_log DATA_DIRECTORY TOPIC` prints the aborted records of a broker's data.
The broker need not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.jars import java_command

TOOL = "org.apache.kafka.tools.DumpLogSegments"

_FILE = re.compile(r"^Dumping \S*-(\d+)/\d+\.log$")
_BATCH = re.compile(
    r"^baseOffset: \d+ .* producerId: (-?\d+) producerEpoch: (-?\d+) .* isTransactional: (true|false) "
)
_RECORD = re.compile(r"^\| offset: (\d+) CreateTime: (\d+) .* key: (\S+) ")
_MARKER = re.compile(r"^\| offset: \d+ .* endTxnMarker: (COMMIT|ABORT) ")


@dataclass(frozen=True)
class Written:
    """A record of a transaction, as it is in the log.

    :param timestamp_ms: that of the record.
    :param epoch: of the producer. It differs between two transactions of a producer, with Kafka 4.
    """

    key: str
    partition: int
    offset: int
    timestamp_ms: int
    producer: int
    epoch: int


@dataclass
class OutputLog:
    """The records of a topic by the end of their transactions.

    :param open: those whose transaction has not ended.
    """

    committed: list[Written] = field(default_factory=list)
    aborted: list[Written] = field(default_factory=list)
    open: list[Written] = field(default_factory=list)

    @property
    def aborted_transactions(self) -> int:
        """Number of aborted transactions that have left a record."""
        return len({(record.producer, record.epoch) for record in self.aborted})


def read_log(data: Path, topic: str) -> OutputLog:
    """Read the log of a topic from a broker's data directory.

    :param topic: its keys are text without spaces.
    """
    files = sorted(str(file) for file in data.glob(f"{topic}-[0-9]*/*.log"))
    command = java_command(TOOL, "--print-data-log", "--files", ",".join(files), options=("-Xmx256m",))
    return parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


def parse(lines: Iterable[str]) -> OutputLog:
    """Return what Kafka's tool ``DumpLogSegments`` has printed of the segments of a topic, in order.

    A marker ends the transaction of its producer in its partition. A record without a transaction is committed.
    """
    log, pending, partition = OutputLog(), dict[tuple[int, int], list[Written]](), 0
    producer, epoch, transactional = -1, -1, False
    for line in lines:
        if found := _FILE.match(line):
            partition = int(found[1])
        elif found := _BATCH.match(line):
            producer, epoch, transactional = int(found[1]), int(found[2]), found[3] == "true"
        elif found := _MARKER.match(line):
            ended = log.committed if found[1] == "COMMIT" else log.aborted
            ended += pending.pop((producer, partition), [])
        elif found := _RECORD.match(line):
            record = Written(found[3], partition, int(found[1]), int(found[2]), producer, epoch)
            of_its_transaction = pending.setdefault((producer, partition), [])
            (of_its_transaction if transactional else log.committed).append(record)
    log.open = [record for records in pending.values() for record in records]
    return log


def main(data: str, topic: str) -> int:
    """Print each aborted record, and whether its key was committed by another transaction."""
    log = read_log(Path(data), topic)
    committed = {record.key for record in log.committed}
    for record in log.aborted:
        print(f"{'committed elsewhere' if record.key in committed else 'never committed':20}{record}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
