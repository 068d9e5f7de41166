"""The end of an expansion without brokers. The worker can die before and after every call that matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kafka_rescale.core.control.journal import Journal, Phase

from tests.support.expansion.gate_world import Killed
from tests.support.situations import situation
from tests.support.small_application import application

MODULE = "tests.support.expansion.expansion_callbacks"
PLAN = situation().plan


@dataclass
class World:
    """A verified expansion's journal. The worker dies before or after one of its calls.

    :param dies_at: number of the moment, counting from 1: odd is before a call, even is after a call. 0 is never.
    """

    callback: str | None = "note"
    journal: Journal = field(default_factory=lambda: Journal(plan=PLAN, phase=Phase.VERIFIED))
    dies_at: int = 0
    moments: int = 0

    @property
    def rescale(self) -> Any:
        """Stands for a ``Rescale`` over real adapters."""
        named = f"{MODULE}:{self.callback}" if self.callback else None
        return SimpleNamespace(
            application=application("shop", on_partition_expansion=named),
            control=SimpleNamespace(read=lambda: SimpleNamespace(report={}, results={})),
            journal=lambda: self.journal,
            change=self.call(self._change),
            end=self.call(lambda phase: self._change(lambda j: j.advanced(phase, now_ms=2))),
        )

    def call(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a call so that the worker may die before and after it."""

        def called(*arguments: Any, **named: Any) -> Any:
            self._moment()
            result = body(*arguments, **named)
            self._moment()
            return result

        return called

    def _change(self, change: Callable[[Journal], Journal]) -> Journal:
        self.journal = change(self.journal)
        return self.journal

    def _moment(self) -> None:
        self.moments += 1
        if self.moments == self.dies_at:
            raise Killed
