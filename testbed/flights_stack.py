"""The live demo application with its topics and its replayed input, for the demo, the tests and the benchmarks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException

from testbed.jars import DEMO_SOURCES, ensure_demo_classes
from testbed.outputs import Comparison, compare_with_expected, read_numbers
from testbed.processes import end_process, end_with_parent, wait_until
from testbed.progress import Progress
from testbed.topics import FLIGHTS

RUN = DEMO_SOURCES / "run.sh"
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class FlightsStack:
    """One flights application on one broker.

    :param directory: directory of the application's state, the logs, and the replay's progress file.
    :param partitions: partition count of the input and output topics at the beginning.
    :param preload: number of flights that are sent at once.
    :param rate: flights per second after that.
    :param limit: how many flights of the year are used; None for all.
    :param lasting: whether the replay slows down, so that it does not end before :meth:`finish_replay`.
    :param pinned: whether the replay sends nothing to partitions that are added meanwhile.
    :param settings: further ``FLIGHTS_…`` variables of ``run.sh``.
    :param program: takes the commands of the application's life cycle, as ``run.sh`` does.
    """

    directory: Path
    bootstrap_servers: str
    partitions: int = 4
    guarantee: str = "at_least_once"
    threads: int = 2
    preload: int = 0
    rate: float = 500
    limit: int | None = None
    lasting: bool = False
    pinned: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    program: Path = RUN
    _replay: subprocess.Popen[bytes] | None = None
    _watchdog: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> dict[str, str]:
        """Properties of an ordinary client."""
        return {"bootstrap.servers": self.bootstrap_servers}

    @property
    def progress_file(self) -> Path:
        """The file in which the replay keeps how far it is."""
        return self.directory / "replay.json"

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which ``run.sh``, and so every lifecycle command, finds this stack."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "FLIGHTS_STATE_ROOT": str(self.directory),
            "FLIGHTS_GUARANTEE": self.guarantee,
            "FLIGHTS_THREADS": str(self.threads),
            **self.settings,
        }

    def run(self, command: str, application_id: str = "flights") -> int:
        """Run one command of the application's life cycle and return its exit code."""
        ensure_demo_classes()
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            [str(self.program), command, application_id], env=environment, check=False
        ).returncode

    def start_replay(self) -> None:
        """Create the topics if they are missing, and send flights in a process of its own."""
        self.directory.mkdir(parents=True, exist_ok=True)
        options = {
            "--bootstrap-servers": self.bootstrap_servers,
            "--partitions": self.partitions,
            "--preload": self.preload,
            "--rate": self.rate,
            "--progress-file": self.progress_file,
            **({"--limit": self.limit} if self.limit is not None else {}),
        }
        words = [str(word) for pair in options.items() for word in pair]
        words += ["--lasting"] * self.lasting + ["--pinned"] * self.pinned
        with (self.directory / "replay.log").open("ab") as log:
            self._replay = subprocess.Popen(
                [sys.executable, "-m", "testbed.replay", *words],
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watchdog = end_with_parent(self._replay.pid)

    def sent(self) -> int:
        """Return how many flights have been sent, about 2 s old while the replay runs."""
        progress = Progress.read(self.progress_file)
        return 0 if progress is None else progress.sent

    def is_replaying(self) -> bool:
        """Whether the replay is still sending flights."""
        return self._replay is not None and self._replay.poll() is None

    def await_sent(self, flights: int, timeout: float = 300) -> None:
        """Return when so many flights have been sent."""
        wait_until(lambda: self.sent() >= flights, timeout=timeout, what=f"{flights} flights to be sent")

    def finish_replay(self, timeout: float = 300) -> None:
        """Send the rest at full speed and return when everything is acknowledged."""
        if self._replay is not None and self.is_replaying():
            self._replay.send_signal(signal.SIGUSR1)
            self._replay.wait(timeout)
        self._end_watchdog()

    def stop(self, *application_ids: str) -> None:
        """End the replay and the applications. Those that have ended already are left alone."""
        if self._replay is not None and self.is_replaying():
            end_process(self._replay.pid)
            self._replay.wait(30)
        self._end_watchdog()
        for application_id in application_ids:
            self.run("stop", application_id)

    def compare(
        self, application_id: str | None, *, output_prefix: str | None = "", logged: bool = False
    ) -> Comparison:
        """Compare changelogs and outputs with the results that follow from the flights sent.

        :param logged: whether to use the flights in the input topic instead of the flights sent. A broker without
            replicas that was killed may have lost flights that it had acknowledged, and may have kept others
            twice.
        """
        progress = Progress.read(self.progress_file)
        assert progress is not None, "nothing has been sent"
        dataset = progress.dataset()
        given = dataset.logged(read_numbers(self.client, FLIGHTS)) if logged else dataset
        return compare_with_expected(
            self.client, given, application_id=application_id, output_prefix=output_prefix
        )

    def await_equal(self, application_id: str, timeout: float = 240, *, logged: bool = False) -> None:
        """Return when the application has the results that follow from the flights sent.

        :param logged: see ``compare``.
        :raises TimeoutError: the results still differ; the error says where.
        """
        differences: list[str] = []

        def equal() -> bool:
            try:
                differences[:] = self.compare(application_id, logged=logged).differences
            except KafkaException:
                return False  # the application has not created its topics yet
            return not differences

        try:
            wait_until(equal, timeout=timeout, what=f"{application_id} to be done with {self.sent():,} flights")
        except TimeoutError as error:
            raise TimeoutError("\n".join([str(error), *differences])) from None

    def _end_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.wait()
            self._watchdog = None


@contextmanager
def environment_of(stack: FlightsStack) -> Iterator[None]:
    """Put the stack's environment into this process, for lifecycle commands that are run from it."""
    before = dict(os.environ)
    os.environ.update(stack.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
