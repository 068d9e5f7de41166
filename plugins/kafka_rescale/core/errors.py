"""Typed errors that say what was found, what was expected, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class Complaint:
    """What is wrong with a thing, and the sentence that says it.

    :param what: the thing concerned, for example ``topic 'orders'``; empty if the reader sees it anyway.
    :param found: what was found there.
    :param expected: what has to be there instead.
    :param remedy: the command or change that mends it.
    """

    what: str
    found: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        subject = f"{self.what}: " if self.what else ""
        return f"{subject}found {self.found}; expected {self.expected}. {self.remedy}"

    def about(self, what: str) -> Self:
        """Return the same complaint about a thing that is named otherwise."""
        return replace(self, what=what)


class RescaleError(Exception):
    """A complaint as an error that a person can act on; the parameters are its parts."""

    def __init__(self, what: str, *, found: str, expected: str, remedy: str) -> None:
        self.complaint = Complaint(what, found, expected, remedy)
        super().__init__(str(self.complaint))

    @classmethod
    def of(cls, complaint: Complaint) -> Self:
        """Return a complaint as an error of this class."""
        return cls(complaint.what, found=complaint.found, expected=complaint.expected, remedy=complaint.remedy)

    @property
    def what(self) -> str:
        """The thing concerned."""
        return self.complaint.what

    @property
    def found(self) -> str:
        """What was found there."""
        return self.complaint.found

    @property
    def expected(self) -> str:
        """What has to be there instead."""
        return self.complaint.expected

    @property
    def remedy(self) -> str:
        """The command or change that mends it."""
        return self.complaint.remedy


class InvalidInput(RescaleError):
    """The application file, a connection or an argument can't be used; nothing has been touched."""


class Unreadable(InvalidInput):
    """A file can't be read. Perhaps it can a moment later: a share or a checkout is away for that long."""


class Refused(RescaleError):
    """The expansion can't be done safely as things are; nothing has been touched."""


class LeaseHeld(Refused):
    """Another run is rescaling this application."""


class UnsafeState(RescaleError):
    """To go on could lose or double data. It is never retried without a person."""


class Outage(RescaleError):
    """A broker, a process or a connection did not answer in time; a retry may help."""


class ClusterOutage(Outage):
    """The brokers did not carry out a request in time; the same request may succeed when they are well again."""


class NotLetIn(ClusterOutage):
    """The brokers do not let a client in.

    It may pass: an issuer of tokens is away for a moment, or a person mends the credentials. Only a check of the
    connection, as preflight makes it, takes it for wrong input.
    """


class TimedOut(Outage):
    """A wait ended before its condition held. The condition may still come true.

    :param waiting_for: what was waited for, as a noun and an infinitive: ``thread a-StreamThread-2 to end``.
    :param seconds: how long the wait was.
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
class Finding(Complaint):
    """One reason to refuse, as preflight collects them."""

    @classmethod
    def of(cls, complaint: Complaint) -> Self:
        """Return a complaint as a reason to refuse."""
        return cls(complaint.what, complaint.found, complaint.expected, complaint.remedy)


class ManyFindings(RescaleError):
    """All findings at once, so that a person mends them in one go. Its own complaint is the first finding."""

    bullet = ""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.what, found=first.found, expected=first.expected, remedy=first.remedy)

    def __str__(self) -> str:
        return "\n".join(f"{self.bullet}{finding}" for finding in self.findings)


class InvalidApplication(ManyFindings, InvalidInput):
    """The mistakes of an application file, each with its line."""


class PreflightRefused(ManyFindings, Refused):
    """The findings of a preflight."""

    bullet = "- "
