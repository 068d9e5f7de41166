"""Run one command, and turn an error into one message and an exit code."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from kafka_rescale.cli.exit_codes import BROKEN, PASSED, REFUSED, exit_code
from kafka_rescale.cli.output import failed
from kafka_rescale.core.errors import RescaleError


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    :returns: 0 success, 1 findings, 2 invalid input or refused, 3 outage, 4 an error in the program.
    """
    try:
        # Here, so that a module that can't be imported is told as well.
        from kafka_rescale.cli.app import app

        with _quiet_clients():
            code = app(arguments, standalone_mode=False, prog_name="python -m kafka_rescale")
    except RescaleError as error:
        failed(error)
        return exit_code(error)
    except typer.Exit as done:
        return done.exit_code
    except Exception as error:
        if not hasattr(error, "show"):
            # Python itself would end with 1, which stands for findings.
            traceback.print_exc()
            return BROKEN
        error.show()  # click reports a mistake in the command line
        return REFUSED
    return code if isinstance(code, int) else PASSED


@contextmanager
def _quiet_clients() -> Iterator[None]:
    """Silence the Kafka clients while a command runs.

    The error reports a failure once. The clients would repeat it for every attempt.
    """
    loggers = [logging.getLogger(name) for name in ("kafka_rescale.librdkafka", "kafka")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
