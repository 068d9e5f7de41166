"""``on_partition_expansion(old, new)`` (KIP-878): begun once per expansion, and never silently again.

A foreign side effect can't be made to happen exactly once, as the process may die between the effect and the
record of it. So the beginning of the call is recorded before the call, and its end by the phase ``COMPLETE``. If a
call was cut short between the two, it is either repeated with the same token, which the function can recognise, or
left to a person.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.callables import named
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Finding, InvalidInput, UnsafeState
from kafka_rescale.core.plan.plan import Plan

SETTING = "on_partition_expansion"
TOKEN = "expansion_id"
_EXPECTED = f"an importable function of (old, new), or of (old, new, {TOKEN})"


@dataclass(frozen=True)
class ExpansionCallback:
    """The function that an application file names.

    :param takes_token: whether it has a parameter ``expansion_id``, so that it can tell a repeated call.
    """

    name: str
    function: Callable[..., object]
    takes_token: bool

    @classmethod
    def of(cls, application: Application) -> ExpansionCallback | None:
        """Return the callback of an application, if it declares one.

        :raises InvalidInput: it can't be imported, or can't be called with two counts.
        """
        name = application.on_partition_expansion
        if name is None:
            return None
        function = named(SETTING, name, _EXPECTED)
        try:
            signature = inspect.signature(function)
            takes_token = TOKEN in signature.parameters
            signature.bind(1, 2, **({TOKEN: ""} if takes_token else {}))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{SETTING} {name!r}", found=str(error), expected=_EXPECTED, remedy="Mend its parameters."
            ) from error
        return cls(name, function, takes_token)

    def begun(self, journal: Journal, *, now_ms: int) -> Journal:
        """Return the journal with the beginning of the call in it.

        :raises UnsafeState: a call has begun before and the function can't recognise a second one, or the
            expansion is not verified, or it is complete.
        """
        begun_ms = journal.callback_begun_ms or now_ms
        following = journal.advanced(Phase.VERIFIED, now_ms=now_ms, callback_begun_ms=begun_ms)
        if journal.callback_begun_ms and not self.takes_token:
            raise UnsafeState(
                f"expansion {expansion_id(journal.plan)}",
                found=f"a call of {self.name} that has begun, and no record of its end",
                expected="one call per expansion",
                remedy=f"Give the function a parameter `{TOKEN}`, the same for every call of one expansion, so "
                "that it can recognise a repeated one; or see whether it has had its effect, bring that about by "
                f"hand if not, and take `{SETTING}` out of the file until this run is complete. Then clear the "
                "callback task.",
            )
        return following

    def __call__(self, old: int, new: int, plan: Plan) -> None:
        """Call it.

        :raises UnsafeState: the function failed, and it can't be known whether it has had its effect.
        """
        token = {TOKEN: expansion_id(plan)} if self.takes_token else {}
        try:
            self.function(old, new, **token)
        except Exception as error:
            if self.takes_token:
                raise
            raise UnsafeState(
                f"{SETTING} {self.name!r}",
                found=f"{type(error).__name__}: {error}",
                expected=f"a call with ({old}, {new}) that returns",
                remedy="It is not called again. See whether it has had its effect, bring that about by hand if "
                f"not, and take `{SETTING}` out of the file until this run is complete; then clear the callback "
                f"task. A function with a parameter `{TOKEN}` is called again.",
            ) from error


def expansion_id(plan: Plan) -> str:
    """Return the token of an expansion. It is the same in every attempt, and no other expansion has it."""
    return f"{plan.green}/{plan.fingerprint}"


def callback_findings(application: Application) -> Iterator[Finding]:
    """Yield a finding if the callback can't be called at the end of the expansion."""
    try:
        ExpansionCallback.of(application)
    except InvalidInput as error:
        yield Finding.of(error.complaint)
