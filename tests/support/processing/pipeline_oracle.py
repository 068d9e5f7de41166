"""Lets Kafka Streams run the programs of ``jvm/tests/PipelinePrograms.java``."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.jars import require_java
from tests.support.jvm_tests import class_path
from tests.support.processing.pipeline_driver import Piped, Written


@dataclass(frozen=True)
class Ran:
    """The result of a program in Kafka Streams.

    :param written: all records of all topics. Names of internal topics are without the application id.
    """

    describe: str
    written: dict[str, list[Written]]


def run_by_kafka_streams(
    scenarios: Mapping[str, Sequence[Piped]], directory: Path, *, cache: int = 0, commit: int = 0
) -> dict[str, Ran]:
    """Let Kafka Streams run programs in one JVM.

    :param scenarios: the records by the name of the program.
    :param directory: for local state.
    :param cache: ``statestore.cache.max.bytes``.
    :param commit: commit after so many records. With 0, the driver commits after each record in its own way.
    """
    lines = [
        json.dumps({"program": name, "records": list(map(_json, s)), "cache": cache, "commit": commit})
        for name, s in scenarios.items()
    ]
    options = ["-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command = [require_java(), *options, "-cp", class_path(), "PipelineOracle", str(directory)]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(scenarios, map(_ran, done.stdout.splitlines()), strict=True))


def _json(record: Piped) -> list[object]:
    header = base64.b64encode(record.header).decode()
    return [record.topic, _text(record.key), _text(record.value), record.timestamp, header]


def _ran(line: str) -> Ran:
    found = json.loads(line)
    written = {topic: [_written(*fields) for fields in rows] for topic, rows in found["topics"].items()}
    return Ran(found["describe"], {topic: rows for topic, rows in written.items() if rows})


def _written(key: str | None, value: str | None, timestamp: int, headers: list[list[str]]) -> Written:
    return Written(_bytes(key), _bytes(value), timestamp, tuple((k, _bytes(v)) for k, v in headers))


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
