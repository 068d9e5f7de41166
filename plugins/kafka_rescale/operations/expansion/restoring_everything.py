"""Has each of green's instances restored the stores of all tasks behind the warm-up gate?

Under the streams protocol (KIP-1071) the brokers assign the tasks. They don't know which instance has which state:
Kafka 4.3 refuses offsets of tasks in a heartbeat. So the tasks that an instance would restore in one common group
need not be the tasks that it gets at the real start. Instead, each instance is alone in a group of its own, and
restores the stores of all tasks. No instance depends on another, and an instance that joins late restores as well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.lag import GateDecision
from kafka_rescale.core.expansion.prewarming import MEMBERS, beats, can_keep, instance_groups, restoration
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.expansion.restoring import SILENT_SECONDS, Changed

log = logging.getLogger(__name__)

SETTLED_SECONDS = 10.0
"""How long to look for further instances if there are fewer than the running generation has."""


@dataclass
class RestoringEverything:
    """One pre-warming in which each instance restores everything.

    :param begins: log starts of green's changelogs.
    :param ends: their ends (exclusive).
    :param expected: how many instances there are likely to be; 0 if that is not known.
    :param is_stable: at the last look, whether as many instances as expected restored in stable groups, or no
        further instance had come for ``SETTLED_SECONDS``.
    :param first_at: monotonic clock when the last instance came.
    :param keeps: whether all instances have said that they can keep their local state.
    :param counted: the instances' counts when everything was restored; None before.
    """

    admin: ClusterAdmin
    green: str
    begins: PartitionOffsets
    ends: PartitionOffsets
    expected: int = 0
    is_stable: bool = False
    first_at: float = field(default_factory=time.monotonic)
    counted: dict[str, int] | None = None
    keeps: bool = True
    _heard: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(self) -> GateDecision:
        """Return how far an instance is that keeps the gate closed. Without any instance, the gate is closed too.

        :raises Changed: an instance has been silent for so long that it must have ended.
        """
        found = self.admin.groups_like(instance_groups(self.green))
        members = [group for group in found if group.endswith(MEMBERS)]
        self._listen([group for group in found if not group.endswith(MEMBERS)])
        settled = time.monotonic() - self.first_at >= SETTLED_SECONDS
        is_complete = settled or 0 < self.expected <= len(self._heard)
        self.is_stable = is_complete and all(self.admin.describe_group(m).state == "Stable" for m in members)
        looks = [restoration(self.begins, self.ends, self.admin.committed(each)) for each in self._heard]
        closed = [look for look in looks if not look.is_open]
        return (closed or looks or [restoration(self.begins, self.ends, {})])[0]

    def all_live(self) -> bool:
        """Whether every instance has reported that it lives, since this was called for the first time."""
        now = {each: count for each, (count, _) in self._heard.items()}
        if self.counted is None:
            self.counted = now
        if any(count <= self.counted.setdefault(each, count) for each, count in now.items()):
            return False
        if len(now) < self.expected:
            log.warning(
                "%d instances have restored, but the running generation has %d: an instance that was not there "
                "restores within the pause",
                len(now),
                self.expected,
            )
        return True

    def _listen(self, instances: Iterable[str]) -> None:
        now = time.monotonic()
        for each in instances:
            texts = self.admin.committed_metadata(each)
            count = max(beats(texts, self.ends).values(), default=0)
            self.keeps = self.keeps and (not count or can_keep(texts, self.ends))
            if each not in self._heard:
                self.first_at = now
                log.info("behind the gate: %d instances restore the stores of all tasks", len(self._heard) + 1)
            if self._heard.get(each, (-1, now))[0] < count:
                self._heard[each] = count, now
        silent = [each for each, (_, at) in self._heard.items() if now - at > SILENT_SECONDS]
        if silent:
            raise Changed(f"{len(silent)} of {len(self._heard)} instances have ended behind the gate")
