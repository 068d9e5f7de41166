"""The bounds within which autoscaling may begin an expansion without a person."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from kafka_rescale.core.application.fields import PartitionCount, Strict, WholeNumber
from kafka_rescale.core.application.windows import WindowText, ZoneName, is_within, local_time


class Bounds(Strict):
    """What autoscaling may do unattended. A field that is left out sets no bound.

    :param windows: when autoscaling may begin an expansion; an expansion that has begun goes on to its end.
    :param time_zone: time zone of the windows.
    :param maximum_partitions: autoscaling never goes further; a person may.
    :param maximum_lag: how many offsets the running generation may be behind, in each partition of its inputs.
    :param approval_above: for a target above this, the plan and the cutover wait for a person's approval.
    """

    windows: tuple[WindowText, ...] = ()
    time_zone: ZoneName = "UTC"
    maximum_partitions: PartitionCount | None = None
    maximum_lag: WholeNumber | None = Field(default=None, ge=0)
    approval_above: PartitionCount | None = None

    def wants_approval(self, target: int) -> bool:
        """Whether a person has to agree to a target."""
        return self.approval_above is not None and target > self.approval_above

    def allows(self, target: int) -> bool:
        """Whether autoscaling may go that far at all."""
        return self.maximum_partitions is None or target <= self.maximum_partitions

    def obstacles(self, lag: int, now_ms: int) -> Iterator[str]:
        """Yield the reasons why an expansion has to wait.

        :param lag: the largest lag of all input partitions, in offsets.
        :param now_ms: wall clock, in ms since the epoch.
        """
        if self.windows and not is_within(self.windows, self.time_zone, now_ms):
            now = local_time(self.time_zone, now_ms)
            yield f"{now:%a %H:%M} {self.time_zone} is outside the windows {', '.join(self.windows)}"
        if self.maximum_lag is not None and lag > self.maximum_lag:
            yield f"a partition of its inputs is {lag} offsets behind, more than maximum_lag ({self.maximum_lag})"
