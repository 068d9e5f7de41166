"""The search for secrets finds them on a command line, in a file, and in the answers of a UI."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.house.canary import Watch, event_logs, shown_in_files, shown_to_others, watching

SECRETS = {"password": "kanarienvogel-0", "key": 'with "quotes"'}
NOWHERE = 1


def test_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.txt").write_text('{"options": "with \\"quotes\\""}')
    (tmp_path / "b.bin").write_bytes(b"\x00\xffkanarienvogel-1")
    assert shown_in_files([tmp_path], SECRETS) == {f"{tmp_path / 'log' / 'a.txt'}: key"}


def test_on_a_command_line() -> None:
    with watching(SECRETS, NOWHERE) as watch:
        command = [sys.executable, "-c", "input(chr(10))", "kanarienvogel-0"]
        sleeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert sleeper.stdout is not None
        sleeper.stdout.readline()  # a process that has just started has no command line yet
        watch.look()
        sleeper.communicate(b"\n", timeout=30)
    assert watch.found == {f"command line of {sleeper.pid}: password"}
    watch = Watch(SECRETS, NOWHERE)
    watch.look()
    assert (watch.found, watch.applications) == (set(), set())
    assert watch.programs


def test_in_an_environment() -> None:
    command = [sys.executable, "-c", "input(chr(10))"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    sleeper = subprocess.Popen(command, env={**os.environ, "SETTING": "kanarienvogel-0"}, **pipes)
    assert sleeper.stdout is not None
    sleeper.stdout.readline()
    watch = Watch(SECRETS, NOWHERE)
    watch.look()
    assert not shown_to_others(sleeper.pid)
    sleeper.communicate(b"\n", timeout=30)
    assert sleeper.pid in watch.holders
    assert os.getpid() not in watch.holders
    assert watch.found == set()


def test_an_event_log_that_can_not_be_searched_is_none(tmp_path: Path) -> None:
    log = tmp_path / "local-1"
    text = b'{"Event":"SparkListenerEnvironmentUpdate"}'
    log.write_bytes(zlib.compress(text))
    with pytest.raises(AssertionError, match="can be searched"):
        event_logs(tmp_path)
    log.write_bytes(text)
    assert event_logs(tmp_path) == [log]


@pytest.fixture
def ui_port() -> Iterator[int]:
    """The port of a server that answers as Spark's UI does, and shows a password on one of its pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = b'[{"id": "local-1", "name": "verify"}]'
            page = b'{"options": "kanarienvogel-0"}' if "/sql" in self.path else b"{}"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(listed if self.path.endswith("applications") else page)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def test_in_what_the_ui_answers(ui_port: int) -> None:
    watch = Watch(SECRETS, ui_port)
    watch.look()
    assert watch.applications == {"verify"}
    (found,) = watch.found
    assert found.startswith("Spark UI, verify, sql")
