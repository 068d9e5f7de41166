"""A Python lifecycle, as a user would write one, for small instances of ``jvm/tests``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from kafka_rescale.lifecycle.instance import Instance

from testbed.jars import ensure_gate_jar
from tests.support.streams_member import COUNTING, StreamsMember, launch

VARIABLE = "TESTS_COUNTING_LIFECYCLE"
"""JSON with ``servers``, ``topic``, ``directory``, ``settings`` and, for another program, ``program``."""


class Counting:
    """Runs one instance per generation, as a child of this process."""

    members: ClassVar[dict[str, StreamsMember]] = {}

    def start(self, instance: Instance) -> None:
        """Start it unless it runs."""
        self._launch(instance, {})

    def _launch(self, instance: Instance, changes: Mapping[str, str], jars: Sequence[Path] = ()) -> None:
        if not self.is_running(instance):
            given: dict[str, Any] = json.loads(os.environ[VARIABLE])
            directory, settings = (
                Path(given["directory"]) / instance.application_id,
                {**given["settings"], **changes},
            )
            self.members[instance.application_id] = launch(
                given["servers"],
                instance.application_id,
                given["topic"],
                directory,
                settings,
                given.get("program", COUNTING),
                jars,
            )

    def stop(self, instance: Instance) -> None:
        """Stop it cleanly if it runs."""
        if self.is_running(instance):
            self.members[instance.application_id].close()

    def is_running(self, instance: Instance) -> bool:
        """Return whether its process lives."""
        member = self.members.get(instance.application_id)
        return member is not None and member.process.poll() is None


class GatedCounting(Counting):
    """The same lifecycle, with pre-warming."""

    def start_gated(self, instance: Instance) -> None:
        """Start it behind the warm-up gate. While it is there, it uses another group protocol."""
        gate = {"default.client.supplier": "org.kafkarescale.WarmUpGate", "group.protocol": "classic"}
        self._launch(instance, gate, [ensure_gate_jar()])
