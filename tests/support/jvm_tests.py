"""The Java files that only tests use, compiled when they are first needed."""

from __future__ import annotations

from pathlib import Path

from testbed.jars import JVM_DIRECTORY, TARGET_DIRECTORY, ensure_classes, jars_directory


def class_path() -> str:
    """Return a class path with the test classes, the broker's jars and Kafka Streams."""
    classes: Path = ensure_classes(JVM_DIRECTORY / "tests", TARGET_DIRECTORY / "test-classes")
    return f"{classes}:{jars_directory('kafka')}/*"
