"""``on_partition_expansion(old, new)`` (KIP-878): a function of the user's, called when the partitions have grown.

A foreign side effect can't be made to happen exactly once, if the process may die between the effect and the
record of it. So the beginning of the call is recorded before the call. A call that was cut short is either
repeated with the same token, which the function can recognise, or left to a person.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kafka_rescale.core.callables import RAISED, named
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState

SETTING = "on_partition_expansion"
TOKEN = "expansion_id"
_EXPECTED = f"an importable function of (old, new), or of (old, new, {TOKEN})"


@dataclass(frozen=True)
class NamedCallback:
    """The function that an application file names.

    :param takes_token: whether it has a parameter ``expansion_id``, so that it can recognise a repeated call.
    """

    name: str
    function: Callable[..., object]
    takes_token: bool

    @classmethod
    def of_name(cls, name: str | None) -> Self | None:
        """Return the callback of that name, if there is one.

        :raises InvalidInput: the function can't be imported, or can't be called with two counts.
        """
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

    def require_first(self, begun_ms: int, token: str) -> None:
        """Refuse a second call that the function could not tell from the first.

        :param begun_ms: wall clock when a call for this expansion has begun; 0 if no call has begun.
        :param token: token of the expansion.
        :raises UnsafeState: a call has begun before, and the function takes no token.
        """
        if begun_ms and not self.takes_token:
            raise UnsafeState(
                f"expansion {token}",
                found=f"a call of {self.name} that has begun, and no record of its end",
                expected="one call per expansion",
                remedy=f"Give the function a parameter `{TOKEN}`, the same for every call of one expansion, so "
                "that it can recognise a repeated one; or see whether it has had its effect, bring that about by "
                f"hand if not, and take `{SETTING}` out of the file until this run is complete. Then clear the "
                "callback task.",
            )

    def call(self, old: int, new: int, token: str) -> None:
        """Call the function.

        :param token: token of the expansion.
        :raises UnsafeState: the function failed, and it can't be known whether it has had its effect.
        """
        try:
            self.function(old, new, **({TOKEN: token} if self.takes_token else {}))
        except RAISED as error:
            if self.takes_token:
                if isinstance(error, SystemExit):
                    raise self._ended(error) from error
                raise
            raise UnsafeState(
                f"{SETTING} {self.name!r}",
                found=f"{type(error).__name__}: {error}",
                expected=f"a call with ({old}, {new}) that returns",
                remedy="It is not called again. See whether it has had its effect, bring that about by hand if "
                f"not, and take `{SETTING}` out of the file until this run is complete; then clear the callback "
                f"task. A function with a parameter `{TOKEN}` is called again.",
            ) from error

    def _ended(self, error: SystemExit) -> Outage:
        # To Airflow, an exit with code 0 is a success of the task.
        return Outage(
            f"{SETTING} {self.name!r}",
            found=f"SystemExit: {error}",
            expected="a function that returns",
            remedy="Let the function return, or raise an error. It is called again with the same token.",
        )
