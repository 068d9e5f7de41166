"""``on_partition_expansion(old, new)`` (KIP-878): a call is begun once per expansion, and never silently again.

The beginning of the call is recorded in the journal, and its end by the phase ``COMPLETE``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.application.expansion_callback import NamedCallback
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Finding, InvalidInput
from kafka_rescale.core.plan.plan import Plan


@dataclass(frozen=True)
class ExpansionCallback(NamedCallback):
    """The function that the file of an application names."""

    @classmethod
    def of(cls, application: Application) -> ExpansionCallback | None:
        """Return the callback of an application, if it declares one.

        :raises InvalidInput: the function can't be imported, or can't be called with two counts.
        """
        return cls.of_name(application.on_partition_expansion)

    def begun(self, journal: Journal, *, now_ms: int) -> Journal:
        """Return the journal with the beginning of the call in it.

        :raises UnsafeState: a call has begun before and the function can't recognise a second one, or the
            expansion is not verified, or it is complete.
        """
        begun_ms = journal.callback_begun_ms or now_ms
        following = journal.advanced(Phase.VERIFIED, now_ms=now_ms, callback_begun_ms=begun_ms)
        self.require_first(journal.callback_begun_ms, expansion_id(journal.plan))
        return following

    def __call__(self, old: int, new: int, plan: Plan) -> None:
        """Call the function.

        :raises UnsafeState: the function failed, and it can't be known whether it has had its effect.
        """
        self.call(old, new, expansion_id(plan))


def expansion_id(plan: Plan) -> str:
    """Return the token of an expansion. It is the same in every attempt, and no other expansion has it."""
    return f"{plan.green}/{plan.fingerprint}"


def callback_findings(application: Application) -> Iterator[Finding]:
    """Yield a finding if the callback can't be called at the end of the expansion."""
    try:
        ExpansionCallback.of(application)
    except InvalidInput as error:
        yield Finding.of(error.complaint)
