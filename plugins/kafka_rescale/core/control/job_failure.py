"""The reason for a job's failure, as a value from which another process can raise the error again."""

from __future__ import annotations

import importlib
from typing import Self

from kafka_rescale.core import errors
from kafka_rescale.core.errors import ClusterOutage, ClusterTimedOut, RescaleError, TimedOut
from kafka_rescale.core.values import Value

LONGEST_TEXT = 10_000
"""Characters of each text that are kept: a record of the control topic has to stay small."""


class JobFailure(Value):
    """An error on its way to another process, as text.

    :param kind: name of the class in :mod:`~kafka_rescale.core.errors`.
    :param seconds: if a wait timed out, how long it lasted.
    :param cause: ``module:class`` of the exception that caused it, for example of a pipeline's own function.
    :param cause_text: the text of that exception.
    """

    kind: str
    what: str
    found: str
    expected: str
    remedy: str
    seconds: float | None = None
    cause: str = ""
    cause_text: str = ""

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return an error as a value; an error of a foreign class becomes the cause."""
        if not isinstance(error, RescaleError):
            typed = RescaleError(
                "the job",
                found=f"{type(error).__name__}: {error}",
                expected="its end without an error",
                remedy="See the job's log.",
            )
            typed.__cause__ = error
            return cls.of(typed)
        kind = next(c.__name__ for c in type(error).__mro__ if _can_be_made_again(c))
        texts = {name: getattr(error, name)[:LONGEST_TEXT] for name in ("what", "found", "expected", "remedy")}
        seconds, cause = getattr(error, "seconds", None), error.__cause__
        if cause is None:
            return cls(kind=kind, **texts, seconds=seconds)
        its = type(cause)
        name = f"{its.__module__}:{its.__qualname__}"
        return cls(kind=kind, **texts, seconds=seconds, cause=name, cause_text=str(cause)[:LONGEST_TEXT])

    @property
    def error(self) -> RescaleError:
        """The error. Its ``__cause__`` has its former class and text, but no other attributes."""
        kind: type[RescaleError] = getattr(errors, self.kind)
        error = kind(self.what, found=self.found, expected=self.expected, remedy=self.remedy)
        if self.seconds is not None:
            timed_out = ClusterTimedOut if issubclass(kind, ClusterOutage) else TimedOut
            error = timed_out(self.what, self.seconds, self.remedy)
        if self.cause:
            error.__cause__ = _exception(self.cause, self.cause_text)
        return error


def _can_be_made_again(kind: type) -> bool:
    """Whether a class is in ``core.errors``, and is made from the four texts."""
    return getattr(errors, kind.__name__, None) is kind and kind.__init__ is RescaleError.__init__


def _exception(name: str, text: str) -> Exception:
    """Return an exception of a class that may not be importable here."""
    module, _, path = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception:
        found = None
    kind = found if isinstance(found, type) and issubclass(found, Exception) else Exception
    # Don't call the constructor: it may want other arguments.
    exception: Exception = kind.__new__(kind)
    exception.args = (text,)
    return exception
