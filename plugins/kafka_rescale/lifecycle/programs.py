"""Running a program that an application file names, and telling beforehand whether it can be run."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kafka_rescale.core.installation import users_directory
from kafka_rescale.lifecycle import sessions

log = logging.getLogger(__name__)

NOT_EXECUTABLE, NO_SUCH_PROGRAM, NO_END = 126, 127, 124
"""Exit codes for commands that returned no exit code. Shells and ``timeout`` use the same numbers."""

_SECRETS_OF_AIRFLOW = ("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__", "KAFKA_RESCALE_KAFKA_CONFIG")
"""Prefixes of environment variables that commands don't get.

A program that a command starts may run for months. It has its own configuration and needs no secret of Airflow.
"""

_HEAD_BYTES = 256
_OUTPUT_SHOWN = 500


def home() -> Path:
    """Return the directory in which commands run.

    It is ``KAFKA_RESCALE_HOME``. If that is not set, it is the directory that holds ``applications/``.
    """
    return Path(os.environ.get("KAFKA_RESCALE_HOME") or users_directory())


def environment() -> dict[str, str]:
    """Return the environment of a command: this process's, without Airflow's connections and settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SECRETS_OF_AIRFLOW)}


def run(command: Sequence[str], timeout_seconds: int, *, may_outlive: bool = True) -> tuple[int, str]:
    """Run a command to its end. Return its exit code and the end of its output.

    A command that can't be run, or that does not end in time, gives an exit code and a text as well.

    This does not wait for a process that the command leaves behind. If that process has inherited the output of
    the command, the file with the output stays, and a warning names the file. The output is no pipe: a pipe would
    keep this function waiting, and would end the process when the pipe is closed.

    :param may_outlive: whether what the command has started may outlive it, as an application outlives its start.
        Otherwise a command that does not end in time is ended with all its processes. What is left of a stop could
        stop the application that a rollback has started meanwhile.
    """
    descriptor, name = tempfile.mkstemp(prefix="kafka-rescale-", suffix=".log")
    output, end = Path(name), "has ended"
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The command gets its own session: when Airflow kills this task, the application must go on running.
            process = subprocess.Popen(
                command,
                cwd=home(),
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        left = _wait(process, timeout_seconds, may_outlive)
        said = output.read_text(errors="replace").strip()[-_OUTPUT_SHOWN:]
        if left is None:
            return process.returncode, said
        end = f"was ended after {timeout_seconds} s"
        return NO_END, _without_end(timeout_seconds, left, said)
    except FileNotFoundError as error:
        return NO_SUCH_PROGRAM, str(error)
    except OSError as error:
        return NOT_EXECUTABLE, str(error)
    finally:
        _remove_unless_written(output, command, end)


def _wait(process: subprocess.Popen[bytes], timeout_seconds: int, may_outlive: bool) -> list[int] | None:
    """Wait for the end of a command. If it has to be ended, return its processes that go on; else None."""
    try:
        process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        return sessions.end(process, with_children=not may_outlive)
    except BaseException:  # A person interrupts the shell, or a limit of Airflow ends this task.
        sessions.end(process, with_children=not may_outlive)
        raise
    return None


def _without_end(timeout_seconds: int, left: Sequence[int], said: str) -> str:
    goes_on = "es {} of it go on" if len(left) > 1 else " {} of it goes on"
    return "".join(
        (
            f"the command did not end within {timeout_seconds} s",
            f", and process{goes_on.format(', '.join(map(str, left)))}" if left else "",
            f"; it had said: {said}" if said else "",
        )
    )


def _remove_unless_written(output: Path, command: Sequence[str], end: str) -> None:
    # Look through all processes only if needed. Commands run within the pause, and the look takes longer than some
    # commands.
    writers = [] if _is_closed(output) else _processes_with(output)
    if not writers:
        output.unlink()
        return
    advice = " Let the command redirect the output of what it starts, such as by `>>app.log 2>&1`."
    log.warning(
        "`%s` %s, and process %s goes on writing its output to %s on this machine.%s",
        " ".join(command),
        end,
        ", ".join(map(str, writers)),
        output,
        advice if end == "has ended" else "",
    )


def _is_closed(file: Path) -> bool:
    """Return True if it is certain that no process has a file open.

    Only then does the kernel grant a lease for writing (fcntl(2)).
    """
    with file.open("r+b") as opened:
        try:
            fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except (OSError, AttributeError):
            return False  # It is open, or this system or file system has no leases.
    return True


def _processes_with(file: Path) -> list[int]:
    """Return the ids of the processes that have a file open, as far as this one may see them."""
    found = set()
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if descriptor.readlink() == file:
                found.add(int(descriptor.parts[2]))
        except OSError:
            continue  # The descriptor has been closed meanwhile, or belongs to a process of another user.
    return sorted(found)


def hindrance(command: Sequence[str]) -> str:
    """Return why a command can't be run; an empty text if it can."""
    if not home().is_dir():
        return f"no directory {home()} to run it in"
    program = _program(command)
    found = _file_of(program)
    if found is None:
        return f"no program {program}"
    if not os.access(found, os.X_OK):
        return f"no permission to execute {found}"
    return _unreadable_by_the_kernel(found)


def _program(command: Sequence[str]) -> str:
    """Return the program that a command runs in the end.

    ``env A=b program`` is the usual way to set a variable. There, the program is the first word after ``env`` that
    sets no variable.
    """
    if Path(command[0]).name != "env":
        return command[0]
    following = next((word for word in command[1:] if "=" not in word), command[0])
    return command[0] if following.startswith("-") else following


def _file_of(program: str) -> Path | None:
    if "/" not in program:
        found = shutil.which(program)
        return Path(found) if found else None
    file = home() / program
    return file if file.is_file() else None


def _unreadable_by_the_kernel(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        return ""  # This process may have the right to execute a file, but not to read it.
    if b"\0" in head:
        return ""
    if not head.startswith(b"#!"):
        return f"{file}, a script that doesn't begin with #!"
    interpreter, *arguments = head[2:].split(b"\n")[0].decode(errors="replace").strip(" \t").split(" ")
    if not os.access(interpreter, os.X_OK):
        return f"{file}, a script for {interpreter!r}, which can't be executed"
    if Path(interpreter).name == "env" and arguments and arguments[0][:1] not in {"", "-"}:
        return "" if shutil.which(arguments[0]) else f"{file}, a script for {arguments[0]!r}, which isn't there"
    return ""
