"""Rules that a user could write for the racks of standbys (KIP-708's first draft)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from kafka_rescale.core.assignment.tasks import TaskId

ASKED = "TEST_RACK_RULE_ASKED"
"""Environment variable: the file in which the rule notes what it was asked."""


class NextRack:
    """A standby is on the rack after the rack of its active task. After the last rack comes the first."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        racks = sorted(client_rack_ids)
        behind = dict(zip(racks, [*racks[1:], racks[0]], strict=True))
        return {rack: {task for task, active in source_tasks.items() if behind[active] == rack} for rack in racks}


class WestOnly:
    """Standbys are only in the west. With two racks, no rule that looks only at racks would answer this."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        racks = sorted(client_rack_ids)
        if ASKED in os.environ:
            with Path(os.environ[ASKED]).open("a") as file:
                file.write(f"{', '.join(map(str, sorted(source_tasks)))} on {', '.join(racks)}\n")
        return {"west": {task for task, active in source_tasks.items() if active != "west"}}


INSTANCE = NextRack()


class WithArguments:
    def __init__(self, racks: int) -> None:
        self.racks = racks


class WithoutMethod:
    pass
