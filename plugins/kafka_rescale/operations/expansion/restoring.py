"""Do all of green's instances restore to the end behind the warm-up gate, each its own tasks?

The state that an instance restores is on its disk at the start only if the instance lives until it is stopped. If
an instance dies, its group counts it as a member until its session times out, 45 s by default. Then another
instance restores its tasks. Before and after that, every changelog is reported to be at its end. So two things
must hold. The members of the first assignment must be the members at the end. And after the last position was
reported, every instance that has reported a position must report once more that it lives.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.lag import GateDecision
from kafka_rescale.core.expansion.prewarming import Assigned, beats, can_keep, change, gate_group, restoration
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

log = logging.getLogger(__name__)

SILENT_SECONDS = 30.0
"""An instance reports every second that it lives."""


class Changed(Exception):
    """The members are not those of the first assignment, so restored state may not be where it is needed."""


@dataclass
class Restoring:
    """One pre-warming, from the first assignment to the end.

    :param begins: log starts of green's changelogs.
    :param ends: their ends (exclusive).
    :param is_stable: whether the group was stable at the last look.
    :param first: assignment of each member when the group was stable for the first time.
    :param first_at: monotonic clock at that moment.
    :param keeps: whether all instances have said that they can keep their local state.
    :param counted: the instances' counts when everything was restored; None before.
    :param restored_at: monotonic clock at that moment.
    """

    admin: ClusterAdmin
    green: str
    begins: PartitionOffsets
    ends: PartitionOffsets
    is_stable: bool = False
    first: Assigned = field(default_factory=dict)
    first_at: float = 0.0
    keeps: bool = False
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
        """Whether every instance has reported that it lives, since this was called for the first time.

        :raises Changed: an instance has been silent for so long that it must have ended.
        """
        texts = self.admin.committed_metadata(gate_group(self.green))
        now, self.keeps = beats(texts, self.ends), can_keep(texts, self.ends)
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
