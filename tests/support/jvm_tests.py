"""The Java files that only tests use, compiled when they are first needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.jars import (
    JVM_DIRECTORY,
    TARGET_DIRECTORY,
    ensure_classes,
    ensure_gate_jar,
    ensure_jars,
    ensure_kafka,
    kafka_version,
    require_java,
)


def class_path(version: str | None = None) -> str:
    """Return a class path with the test classes, the broker's jars and Kafka Streams.

    :param version: of Kafka Streams; by default the version of ``pom.xml``, with which the classes are compiled.
    """
    classes: Path = ensure_classes(JVM_DIRECTORY / "tests", TARGET_DIRECTORY / "test-classes")
    return f"{classes}:{ensure_kafka(version or kafka_version())}/*"


def gate_class_path() -> str:
    """Return a class path with the jar of the gates and Kafka Streams."""
    return f"{ensure_gate_jar()}:{ensure_jars('kafka')}/*"


def run_gate_test(source: Path, *arguments: str, seconds: float = 60) -> list[str]:
    """Run a Java file that tests the gates without a broker, and return the lines that it has printed.

    :param seconds: how long it may take.
    """
    command = [require_java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", gate_class_path()]
    done = subprocess.run(
        [*command, str(source), *arguments], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
