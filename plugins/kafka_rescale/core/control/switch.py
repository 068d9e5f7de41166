"""When the switch to the next generation begins: what the file, the approval and people have said about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field

from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.values import Value


class Order(StrEnum):
    """What the switch waits for.

    ``window``: a window of the file; without windows, nothing. ``now``: nothing, whatever the windows are.
    ``hold``: a further order of a person. ``cancel``: nothing any more, because there will be no switch.
    """

    WINDOW = "window"
    NOW = "now"
    HOLD = "hold"
    CANCEL = "cancel"


class Switch(Value):
    """The record of one attempt.

    :param plan: fingerprint of the expansion's plan.
    :param attempt: number of the attempt in the journal. Another attempt has another record.
    :param order: the last order.
    :param not_before_ms: wall clock before which the switch does not begin; 0 without such a time.
    :param by: the person who gave the last order; empty if nobody has given an order yet.
    :param at_ms: when it was noted.
    :param asked_for_ms: when that person asked for it, if the task that noted it came later; 0 if not.
    :param reason: why, if a person has given a reason.
    :param asked: whether the run has asked for an approval that nobody has given yet.
    :param windows: the windows of the file.
    :param since_ms: when the copies were ready for the switch, and the wait began; 0 before.
    :param until_ms: until when the copies are kept near.
    :param tombstone_ms: how long the copying may be interrupted (``delete.retention.ms``); None without copies.
    :param released_ms: when the switch was let through, from when on it is up to the cutover; 0 before, or if a
        task waits for it again.
    """

    plan: str
    attempt: int
    order: Order = Order.WINDOW
    not_before_ms: int = 0
    by: str = ""
    at_ms: int = 0
    asked_for_ms: int = Field(default=0, exclude_if=lambda ms: not ms)
    reason: str = ""
    asked: bool = False
    windows: CutoverWindows | None = None
    since_ms: int = 0
    until_ms: int = 0
    tombstone_ms: int | None = None
    released_ms: int = 0

    @classmethod
    def of(cls, journal: Journal, found: Switch | None) -> Switch:
        """Return the record of the journal's attempt; a record of an earlier attempt doesn't count."""
        plan, attempt = journal.plan.fingerprint, journal.attempt
        return (
            found if found and (found.plan, found.attempt) == (plan, attempt) else cls(plan=plan, attempt=attempt)
        )

    @property
    def has_begun(self) -> bool:
        """Whether the copies are ready, and the wait for the switch has begun."""
        return self.since_ms > 0

    def begun(
        self, now_ms: int, longest_ms: int, windows: CutoverWindows | None, tombstone_ms: int | None, *, asks: bool
    ) -> Self:
        """Return the record when a task begins to wait, or begins again. The limit counts from the first time.

        What was let through before counts no more: a task that was cleared decides by the present time.

        :param longest_ms: how long the file lets the task wait.
        :param asks: whether the task asks a person.
        """
        since = self.since_ms or now_ms
        changes = {"since_ms": since, "until_ms": since + longest_ms, "windows": windows, "asked": asks}
        return self.model_copy(update={**changes, "tombstone_ms": tombstone_ms, "released_ms": 0})

    def of_next_run(self) -> Self:
        """Return what stays when another run goes on with the attempt: that a person has postponed the switch.

        That run waits by itself, and asks again. What was said to let the switch begin, or to end the former run,
        was not said about that run.
        """
        fresh = type(self)(plan=self.plan, attempt=self.attempt)
        if self.order not in {Order.WINDOW, Order.HOLD}:
            return fresh
        words = ("order", "not_before_ms", "by", "at_ms", "asked_for_ms", "reason")
        return fresh.model_copy(update={name: getattr(self, name) for name in words})

    def said(
        self,
        order: Order,
        by: str,
        at_ms: int,
        *,
        not_before_ms: int = 0,
        reason: str = "",
        asked_for_ms: int | None = None,
    ) -> Self:
        """Return the record after a person's order.

        :param at_ms: now.
        :param asked_for_ms: when the person asked for it; None for now.
        :raises Refused: the switch has been let through, or was cancelled.
        """
        self._assert_waits()
        words = {"order": order, "not_before_ms": not_before_ms, "by": by, "at_ms": at_ms, "reason": reason}
        return self.model_copy(update={**words, "asked_for_ms": asked_for_ms or 0})

    def approved(self, by: str, at_ms: int, asked_for_ms: int | None = None) -> Self:
        """Return the record after an approval that names neither a time nor "now".

        A postponement stays, and so does a time. The form says "in the window", so another person's "now" does not
        pass over it: the switch may begin later than that person wants, but not earlier than the question says.

        :raises Refused: the switch has been let through, or was cancelled.
        """
        self._assert_waits()
        if self.order is Order.HOLD or (self.order is Order.WINDOW and self.not_before_ms):
            return self
        return self.said(Order.WINDOW, by, at_ms, not_before_ms=self.not_before_ms, asked_for_ms=asked_for_ms)

    def answered(self) -> Self:
        """Return the record after the approval: nothing is asked any more."""
        return self.model_copy(update={"asked": False})

    def released(self, now_ms: int) -> Self:
        """Return the record after the switch was let through."""
        return self.model_copy(update={"released_ms": now_ms})

    def _assert_waits(self) -> None:
        if self.released_ms:
            raise Refused(
                "switch",
                found="a cutover that has been let through",
                expected="a switch that is still waited for",
                remedy="Until its promotion, `rollback_<application>` takes it back.",
            )
        if self.order is Order.CANCEL:
            raise Refused(
                "switch",
                found=f"a switch that {self.by} has cancelled",
                expected="a switch that is still waited for",
                remedy="Trigger the expansion again when its run has ended: it goes on with the copies.",
            )
