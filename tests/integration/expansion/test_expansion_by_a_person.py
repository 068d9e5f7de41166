"""A person stops and starts a live application as the task's log asks, and says that it has stopped.

Its session timeout is longer than the test. A test that waited for it would never end.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from tests.integration.expansion.test_stores_control_run import (
    BLUE,
    CONTROL,
    GREEN,
    assert_equals_live_control,
    await_state,
    fed,
)
from tests.support.stores_application import StoresApplication, environment_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STORE, BEFORE, AFTER, SLOW_SECONDS = "suppress-window", 3, 6, 2.0
PATIENT = ("--session-timeout-ms", "1800000")
ASKED = re.compile(
    r"PLEASE (?P<what>START|STOP every instance of) (?P<application>\S+)(?P<how>.*) NOW\. the dashboard"
)


class Person(logging.Handler):
    """Does what a log asks for, after some seconds.

    :param app: the application whose instances it starts and stops.
    """

    def __init__(self, app: StoresApplication) -> None:
        super().__init__(logging.WARNING)
        self.app, self.done, self.said = app, list[str](), list[int]()
        self.config = app.directory / "client.properties"
        self.config.write_text(f"bootstrap.servers={app.bootstrap_servers}\n")

    def emit(self, record: logging.LogRecord) -> None:
        """Begin to do what the message asks for. The task that logged it waits."""
        if found := ASKED.search(record.getMessage()):
            Thread(target=self._do, args=(found,), daemon=True).start()

    def _do(self, asked: re.Match[str]) -> None:
        time.sleep(SLOW_SECONDS)
        self.done.append(f"{asked['what'].split()[0]} {asked['application']}")
        if asked["what"] == "START":
            assert asked["how"] == f" for {AFTER} partitions"
            self.app.start(asked["application"], AFTER, *PATIENT)
        else:
            self.app.stop(asked["application"])
            file = str(self.app.directory / "stores.yaml")
            self.said.append(main(["stopped", file, "--config", str(self.config)]))


@contextmanager
def reading_the_log(app: StoresApplication) -> Iterator[Person]:
    """Let a person read the log all the time."""
    person, logger = Person(app), logging.getLogger("kafka_rescale")
    logger.addHandler(person)
    try:
        yield person
    finally:
        logger.removeHandler(person)


def test_it_ends_as_one_that_was_never_rescaled(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(STORE, tmp_path, broker.bootstrap_servers, "exactly_once_v2")
        feeder = fed(app)
        with environment_of(app), reading_the_log(app) as person:
            try:
                app.start(BLUE, BEFORE, *PATIENT)
                await_state(app, BLUE)
                file = app.write_file(AFTER, lifecycle={"type": "manual", "instructions": "the dashboard"})
                timings = Expansion.of_file(file, broker.bootstrap_servers, tmp_path / "run").run()
                assert person.done == [f"STOP {BLUE}", f"START {GREEN}"]
                assert person.said == [PASSED]
                assert_equals_live_control(app, feeder, GREEN, BEFORE, AFTER)
            finally:
                for name in (BLUE, GREEN, CONTROL):
                    app.stop(name)
        print(f"by a person: {timings}")
