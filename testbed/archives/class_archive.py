"""Classes of a program in an archive that the JVM maps, for machines on which it is started again and again.

Half of what a short run costs is loading and verifying the same thousands of classes; two cores feel that. Class
data sharing (JEP 350) keeps them parsed in a file. The archive belongs to one JVM and one class path; a JVM that
finds another one ignores it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from testbed.jars import build_lock, require_java

log = logging.getLogger(__name__)

SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""The JVM would say on stdout that it ignores an archive, or could not take a class into it."""


def archive_in(directory: Path, *program: object) -> Path:
    """Return where the archive of this Java and of one version of a program is, or would be.

    :param program: whatever differs between its versions.
    """
    java = Path(require_java()).resolve()
    parts = (java, java.stat().st_mtime_ns, *program)
    return directory / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def make_archive(archive: Path, train: Callable[[tuple[str, ...]], str], *, lack: str) -> Path | None:
    """Run a program once, and archive the classes that it has loaded; returns the archive.

    :param train: runs it with some options of the JVM, and returns why it has failed, if so.
    :param lack: what it costs to have none.
    :returns: None if this JVM can't, which costs time and nothing else.
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
    """Return the options with which a JVM maps an archive; none if there is no archive."""
    return ("-Xshare:auto", f"-XX:SharedArchiveFile={archive}", *SILENT) if archive.is_file() else ()
