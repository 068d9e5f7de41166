"""The broker's classes in an archive: its start needs half of the processor time then."""

from __future__ import annotations

from pathlib import Path

from testbed.class_archive import archive_in, using
from testbed.jars import JVM_DIRECTORY, TARGET_DIRECTORY, jars_directory

ARCHIVES = TARGET_DIRECTORY / "broker"


def archive_path() -> Path:
    """Return where the archive of this broker, at this place, is or would be."""
    return archive_in(ARCHIVES, (JVM_DIRECTORY / "pom.xml").read_bytes(), jars_directory("kafka"))


def quick_start() -> tuple[str, ...]:
    """Return the options of the JVM with which a broker and its tools start quickly; none without an archive."""
    return using(archive_path())
