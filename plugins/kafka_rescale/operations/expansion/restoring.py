"""Whether green's instances restore to the end behind the warm-up gate, all of them, each its own tasks.

What an instance restores is on its disk only if it lives until it is stopped. A group counts one that has died
among its members until its session times out, 45 s by default, and then another one restores its tasks: both times
every changelog is told to be at its end. So the members of the first assignment have to be those at the end, and
every instance that has told a position has to tell that it lives after the last position was told.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.lag import GateDecision
from kafka_rescale.core.expansion.prewarming import Assigned, beats, change, gate_group, restoration
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

log = logging.getLogger(__name__)

SILENT_SECONDS = 30.0
"""An instance tells every second that it lives."""


class Changed(Exception):
    """The members are not those of the first assignment: what was restored may not be where it is needed."""


@dataclass
class Restoring:
    """One pre-warming, from the first assignment to the end.

    :param begins: log starts of green's changelogs.
    :param ends: where they end (exclusive).
    :param is_stable: whether the group was when it was looked at last.
    :param first: what each member was assigned when it was for the first time.
    :param first_at: monotonic clock then.
    :param counted: the instances' counts when all was restored; None before.
    :param restored_at: monotonic clock then.
    """

    admin: ClusterAdmin
    green: str
    begins: PartitionOffsets
    ends: PartitionOffsets
    is_stable: bool = False
    first: Assigned = field(default_factory=dict)
    first_at: float = 0.0
    counted: dict[str, int] | None = None
    restored_at: float = 0.0

    def look(self) -> GateDecision:
        """Return how far the restore consumers are.

        :raises Changed: the members, or their tasks, are not those of the first assignment.
        """
        decision = restoration(self.begins, self.ends, self.admin.committed(gate_group(self.green)))
        group = self.admin.describe_group(self.green)
        self.is_stable = group.state == "Stable"
        if self.is_stable:
            if not self.first:
                self.first, self.first_at = group.assigned, time.monotonic()
                log.info("behind the gate: %s members restore", len(self.first))
            elif told := change(self.first, group.assigned):
                raise Changed(told)
        return decision

    def all_live(self) -> bool:
        """Whether every instance has told that it lives, since this was asked for the first time.

        :raises Changed: one has not for so long that it must have ended.
        """
        now = beats(self.admin.committed_metadata(gate_group(self.green)), self.ends)
        if self.counted is None:
            self.counted, self.restored_at = now, time.monotonic()
            if not now:
                log.warning(
                    "the warm-up gate is of an earlier version: an instance that has just died is not seen"
                )
            return not now
        silent = [each for each, count in self.counted.items() if now.get(each, 0) <= count]
        if silent and time.monotonic() - self.restored_at > SILENT_SECONDS:
            raise Changed(f"{len(silent)} of {len(self.counted)} instances have ended after they had restored")
        return not silent
