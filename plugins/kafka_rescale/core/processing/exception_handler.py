"""The handler of uncaught exceptions. It decides what happens after a thread has died (KIP-663, KIP-671)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput

log = logging.getLogger(__name__)

SETTING = "uncaught.exception.handler"
EXPECTED = f"a function of the exception that returns {', '.join(Decision)}"

Handler = Callable[[Exception], Decision]


def exception_handler(declared: str) -> Handler:
    """Return the handler that an application file declares.

    :param declared: a decision, which holds for every error, or ``module:name`` of a function that decides.
    :raises InvalidInput: there is no such function.
    """
    if ":" not in declared:
        return lambda _: Decision(declared)
    function = named(SETTING, declared, EXPECTED)
    if not callable(function):
        raise InvalidInput(
            f"{SETTING} {declared!r}",
            found=f"a {type(function).__name__}",
            expected=EXPECTED,
            remedy="Name the function.",
        )
    return lambda exception: _decision(declared, function, exception)


def _decision(name: str, function: Callable[[Exception], object], exception: Exception) -> Decision:
    """Ask a user's function. If the function fails, shut the client down: this may have been its decision."""
    try:
        return Decision(str(function(exception)))
    except Exception:
        log.exception("%s %r failed on %r: the client is shut down", SETTING, name, exception)
        return Decision.SHUTDOWN_CLIENT
