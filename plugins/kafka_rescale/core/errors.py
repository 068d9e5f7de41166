"""Typed errors that say what was found, what was expected, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class RescaleError(Exception):
    """An error that a person can act on.

    :param what: the thing concerned, for example ``topic 'orders'``.
    :param found: what was found there.
    :param expected: what has to be there instead.
    :param remedy: the command or change that mends it.
    """

    def __init__(self, what: str, *, found: str, expected: str, remedy: str) -> None:
        self.what, self.found, self.expected, self.remedy = what, found, expected, remedy
        super().__init__(f"{what}: found {found}; expected {expected}. {remedy}")


class InvalidInput(RescaleError):
    """The application file, a connection or an argument can't be used; nothing has been touched."""


class Refused(RescaleError):
    """The expansion can't be done safely as things are; nothing has been touched."""


class LeaseHeld(Refused):
    """Another run is rescaling this application."""


class UnsafeState(RescaleError):
    """Going on could lose or double data; never retried without a person."""


class Outage(RescaleError):
    """A broker, a process or a connection did not answer in time; a retry may help."""


class ClusterOutage(Outage):
    """The brokers did not carry out a request in time; the same request may succeed when they are well again."""


class TimedOut(Outage):
    """A wait ended before its condition held; the condition still may come true.

    :param waiting_for: what was waited for, as a noun and an infinitive: ``thread a-StreamThread-2 to end``.
    :param seconds: how long.
    """

    def __init__(self, waiting_for: str, seconds: float, remedy: str) -> None:
        super().__init__(waiting_for, found=f"no, after {seconds:g} s", expected="yes", remedy=remedy)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"Timed out after {round(self.seconds, 1):g} s waiting for {self.what}. {self.remedy}"


class ClusterTimedOut(TimedOut, ClusterOutage):
    """The brokers did not show a change in time; the same request may succeed when they are well again."""


class Fenced(RescaleError):
    """A newer attempt has taken over; this one must stop and has written nothing since."""


@dataclass(frozen=True)
class Finding:
    """One reason to refuse, as preflight collects them."""

    what: str
    found: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: found {self.found}; expected {self.expected}. {self.remedy}"


class InvalidApplication(InvalidInput):
    """All mistakes of an application file at once, each with its line."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.what, found=first.found, expected=first.expected, remedy=first.remedy)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


class PreflightRefused(Refused):
    """All findings of a preflight at once, so that a person mends them in one go."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.what, found=first.found, expected=first.expected, remedy=first.remedy)

    def __str__(self) -> str:
        return "\n".join(f"- {finding}" for finding in self.findings)
