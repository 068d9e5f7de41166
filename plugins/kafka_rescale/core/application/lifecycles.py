"""The ways to start and stop an instance set that an application file can declare."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kafka_rescale.core.application.fields import COMMAND_SECONDS, Strict, WholeNumber

STARTS = ("start", "start_gated", "start_held")


class ShellLifecycle(Strict):
    """Commands with ``{application_id}``, ``{partitions}``, ``{generation}``, ``{internal_topic_prefix}`` and
    ``{input:NAME}`` filled in. Each command is one program with its arguments; no shell reads it.

    ``{input:orders}`` is the topic that the instance has to read as its input ``orders``. It is the topic itself,
    or the successor of a ``repartitioned`` input.
    ``start`` and ``stop`` must return when they are done. Either may be called twice. ``status`` exits with 0
    (running) or 3 (stopped), as LSB init scripts do. ``start_gated`` starts the instances behind the warm-up gate,
    with the local state directories that ``start`` uses afterwards. Without ``start_gated``, green is not
    pre-warmed. ``start_held`` does what ``start`` does, behind the hold gate: the processes start ahead of the
    pause, and join nothing until they are let in. Without ``start_held``, their start is a part of the pause.
    """

    type: Literal["shell"]
    start: str
    start_gated: str | None = None
    start_held: str | None = None
    stop: str
    status: str
    timeout_seconds: WholeNumber = Field(default=COMMAND_SECONDS, ge=1)

    @property
    def commands(self) -> dict[str, str]:
        """The declared commands, by the name of their field."""
        names = (*STARTS, "stop", "status")
        given: dict[str, str | None] = {name: getattr(self, name) for name in names}
        return {name: command for name, command in given.items() if command is not None}


class PythonLifecycle(Strict):
    """A class ``module:Name``: ``start(instance)``, ``stop(instance)`` and ``is_running(instance) -> bool``.

    If the class also has ``start_gated(instance)``, green is pre-warmed behind the warm-up gate. If it has
    ``start_held(instance)``, green's processes start ahead of the pause, behind the hold gate.
    """

    type: Literal["python"]
    callable: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]


class ManualLifecycle(Strict):
    """A person starts and stops the instances. Kafka shows when the person has done it.

    ``start_gated`` says how to start the instances behind the warm-up gate. Without it, green is not pre-warmed.
    ``start_held`` says how to start them behind the hold gate, ahead of the pause.
    """

    type: Literal["manual"]
    instructions: str = ""
    start_gated: str | None = None
    start_held: str | None = None
    timeout_seconds: WholeNumber = Field(default=1800, ge=1)


Lifecycle = Annotated[ShellLifecycle | PythonLifecycle | ManualLifecycle, Field(discriminator="type")]
