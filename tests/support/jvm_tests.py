"""The Java files that only tests use, compiled when they are first needed."""

from __future__ import annotations

from pathlib import Path

from testbed.jars import JVM_DIRECTORY, TARGET_DIRECTORY, ensure_classes, ensure_kafka, kafka_version


def class_path(version: str | None = None) -> str:
    """Return a class path with the test classes, the broker's jars and Kafka Streams.

    :param version: of Kafka Streams; by default the version of ``pom.xml``, with which the classes are compiled.
    """
    classes: Path = ensure_classes(JVM_DIRECTORY / "tests", TARGET_DIRECTORY / "test-classes")
    return f"{classes}:{ensure_kafka(version or kafka_version())}/*"
