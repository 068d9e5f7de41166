"""A real Kafka Streams instance in a process of its own. A test can wait for every state that it enters."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from testbed.jars import require_java
from testbed.processes import wait_until
from tests.support.jvm_tests import class_path

COUNTING = "CountingMember"


@dataclass
class StreamsMember:
    """A running instance of one of the programs that print their states.

    :param states: the states that it has entered, in order.
    """

    process: subprocess.Popen[str]
    states: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_state(self, state: str, timeout: float = 90) -> None:
        """Wait until it has entered a state."""
        wait_until(
            lambda: state in self.states or not self._reader.is_alive(),
            timeout=timeout,
            what=f"{state}, after {self.states}",
        )
        assert state in self.states, f"it has ended: {self.states}"

    def close(self, timeout: float = 90) -> None:
        """Let it close cleanly."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout)

    def kill(self) -> None:
        """End it without warning."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.states.append(line.strip())


@contextmanager
def streams_member(
    servers: str,
    application_id: str,
    topic: str,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    program: str = COUNTING,
    jars: Sequence[Path] = (),
    version: str | None = None,
) -> Iterator[StreamsMember]:
    """An instance that reads ``topic`` and writes ``<topic>-counts``. It is killed at the end of the block.

    :param settings: of Kafka Streams, on top of its defaults.
    :param program: a class of ``jvm/tests``.
    :param jars: added to its class path.
    :param version: of Kafka Streams; by default that of ``jvm/pom.xml``.
    """
    member = launch(servers, application_id, topic, directory, settings or {}, program, jars, version=version)
    try:
        yield member
    finally:
        member.kill()


def launch(
    servers: str,
    application_id: str,
    topic: str,
    directory: Path,
    settings: Mapping[str, str],
    program: str = COUNTING,
    jars: Sequence[Path] = (),
    options: Sequence[str] = (),
    version: str | None = None,
) -> StreamsMember:
    """Start an instance. The caller has to end it.

    :param options: of the JVM.
    :param version: as in ``streams_member``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    own = [f"{name}={value}" for name, value in settings.items()]
    arguments = [servers, application_id, topic, f"{topic}-counts", str(directory), *own]
    on_path = ":".join([class_path(version), *map(str, jars)])
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            [require_java(), *options, "-cp", on_path, program, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    return StreamsMember(process)
