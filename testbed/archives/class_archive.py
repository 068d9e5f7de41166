"""A program's classes in an archive that the JVM maps, for machines on which the program starts again and again.

Half of the cost of a short run is loading and verifying the same thousands of classes, which matters on two cores.
Class data sharing (JEP 350) keeps the parsed classes in a file. The archive belongs to one JVM and one class path.
A JVM ignores an archive of another JVM or class path.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from testbed.jars import build_lock, require_java

log = logging.getLogger(__name__)

SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""Without these options, the JVM prints on stdout that it ignores an archive, or could not archive a class."""


def archive_in(directory: Path, *program: object) -> Path:
    """Return the path of the archive for this Java and a version of a program. The archive may not exist.

    :param program: values that differ between versions of the program.
    """
    java = Path(require_java()).resolve()
    parts = (java, java.stat().st_mtime_ns, *program)
    return directory / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def make_archive(archive: Path, train: Callable[[tuple[str, ...]], str], *, lack: str) -> Path | None:
    """Run a program once, archive the classes that it has loaded, and return the archive.

    :param train: runs the program with JVM options, and returns why it has failed, or an empty text.
    :param lack: the consequence of having no archive, for the log.
    :returns: None if this JVM can't make an archive. The program then only starts more slowly.
    """
    with build_lock():
        if archive.is_file():
            return archive
        archive.parent.mkdir(parents=True, exist_ok=True)
        for outdated in archive.parent.glob("*.jsa"):
            outdated.unlink()
        made = archive.with_suffix(".new")
        failure = train((f"-XX:ArchiveClassesAtExit={made}", *SILENT))
        if failure or not made.is_file():
            log.warning("%s: %s", lack, failure or "no archive")
            return None
        return made.replace(archive)


def using(archive: Path) -> tuple[str, ...]:
    """Return the options with which a JVM maps an archive; empty if there is no archive."""
    return ("-Xshare:auto", f"-XX:SharedArchiveFile={archive}", *SILENT) if archive.is_file() else ()
