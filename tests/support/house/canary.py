"""Searches for secrets where they must not be: in files, in all processes, in Spark's UI."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

UI_PORTS = 4
"""So many ports are looked at: Spark takes the next port if its own is taken."""

_PAGES = ("environment", "allexecutors", "jobs", "stages?details=true", "sql?details=true&planDescription=true")
_PAUSE_SECONDS = 0.2


def key_material(pem: Path) -> str:
    """Return a piece of the private key in a PEM file. No certificate contains it."""
    lines = pem.read_text().splitlines()
    return lines[lines.index("-----BEGIN PRIVATE KEY-----") + 1]


def shown_in(text: bytes, secrets: Mapping[str, str]) -> set[str]:
    """Return the names of the secrets that a text shows, either plainly or as JSON writes them."""
    return {
        name
        for name, secret in secrets.items()
        if secret.encode() in text or json.dumps(secret)[1:-1].encode() in text
    }


def shown_in_files(directories: Iterable[Path], secrets: Mapping[str, str]) -> set[str]:
    """Return ``file: secret`` for every file below the directories that shows a secret."""
    files = (file for directory in directories for file in directory.rglob("*") if file.is_file())
    return {f"{file}: {name}" for file in files for name in shown_in(file.read_bytes(), secrets)}


def event_logs(directory: Path) -> list[Path]:
    """Return Spark's event logs that can be searched. No search finds anything in a compressed or empty log."""
    logs = [file for file in directory.rglob("*") if file.is_file() and b"SparkListener" in file.read_bytes()]
    assert logs, f"no event log that can be searched in {directory}"
    return logs


def shown_to_others(pid: int) -> bool:
    """Return whether another user can read the environment of a process."""
    file = Path(f"/proc/{pid}/environ")
    if os.geteuid() != 0:  # Without root, no other user can try. So trust the file's permissions.
        return bool(file.stat().st_mode & 0o077)
    nobody = pwd.getpwnam("nobody")
    other = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return subprocess.run(["cat", str(file)], check=False, capture_output=True, **other).returncode == 0


@dataclass
class Watch:
    """What was seen from outside while something ran.

    :param found: the places that showed a secret.
    :param programs: the command lines of all processes so far.
    :param holders: command lines, by process id, of processes with a secret in their environment.
    :param applications: names of the Spark applications whose UI was read to the end.
    """

    secrets: Mapping[str, str] = field(repr=False)
    ui_port: int
    found: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    holders: dict[int, str] = field(default_factory=dict)
    applications: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Look once."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue  # the process has ended, or belongs to another user
            program = line.replace(b"\0", b" ").decode(errors="replace")[:300]
            self.programs.add(program)
            if shown_in(environment, self.secrets):
                self.holders[int(process.name)] = program
            self.found |= {f"command line of {process.name}: {name}" for name in shown_in(line, self.secrets)}
        for port in range(self.ui_port, self.ui_port + UI_PORTS):
            self._look_at_ui(f"http://127.0.0.1:{port}/api/v1/applications")

    def _look_at_ui(self, address: str) -> None:
        try:
            for application in json.loads(_read(address)):
                base = f"{address}/{application['id']}"
                for page in _PAGES:
                    shown = shown_in(_read(f"{base}/{page}"), self.secrets)
                    self.found |= {f"Spark UI, {application['name']}, {page}: {name}" for name in shown}
                self.applications.add(application["name"])
        except (URLError, OSError, ValueError):
            return  # no UI on this port, or no longer


def _read(address: str) -> bytes:
    with urlopen(address, timeout=5) as answer:
        return bytes(answer.read())


@contextmanager
def watching(secrets: Mapping[str, str], ui_port: int) -> Iterator[Watch]:
    """Look again and again while the block runs."""
    watch, ended = Watch(secrets, ui_port), threading.Event()

    def run() -> None:
        while not ended.wait(_PAUSE_SECONDS):
            watch.look()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
