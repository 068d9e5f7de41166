"""The group of the running generation, as ``status`` shows it. Without an answer of the brokers it is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.page.health import NOBODY, Health, Level, health_of
from kafka_rescale.kafka.client.connection import KafkaConnection

ANSWER_SECONDS = 5.0
"""How long the coordinator is asked. ``status`` is most needed when a broker does not answer."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class SeenGroup:
    """The result of one look.

    :param found: the group; None if the look has failed.
    :param health: the application's health, as the page shows it; None if the group is unknown.
    :param reason: why the look has failed.
    """

    group_id: str
    found: GroupDescription | None = None
    health: Health | None = None
    reason: str = ""

    @property
    def data(self) -> dict[str, object]:
        """The group for programs. Members that are not known are null, not 0."""
        return {
            "id": self.group_id,
            "state": self.found.state if self.found else UNKNOWN,
            "members": len(self.found.members) if self.found and self._are_members_known else None,
        }

    def lines(self) -> Iterator[str]:
        """Yield the group, and why a person is needed if one is."""
        found = self.found
        if found is None:
            yield f"group: unknown whether {self.group_id} has members: {self.reason}"
        elif not self._are_members_known:
            yield f"group: {self.group_id} is {found.state}, its members are not known"
        elif not found.is_live:
            yield f"group: {self.group_id} is {found.state}: it has NO MEMBER"
        else:
            count = len(found.members)
            yield f"group: {self.group_id} is {found.state} with {count} member{'s' * (count != 1)}"
        if self.health is not None and self.health.level in {Level.ATTENTION, Level.BAD}:
            yield f"needs a person: {self.health.reason}"

    @property
    def _are_members_known(self) -> bool:
        return self.found is not None and (self.found.is_live or self.found.state in NOBODY)


def look_at_group(
    application: Application, connection: KafkaConnection, control: ControlState, now_ms: int
) -> SeenGroup:
    """Ask the coordinator of the running generation's group.

    :param control: the control state, ``with_silent_jobs``.
    :param now_ms: wall clock, in ms since the epoch.
    """
    # As in ``ClusterAdmin``: the import of kafka-python takes long, and other commands don't need it.
    from kafka_rescale.kafka.admin.group_members import describe_group

    group_id = control.generations.running if control.generations else application.application_id
    try:
        found = describe_group(connection, group_id, seconds=ANSWER_SECONDS)
    except RescaleError as error:
        return SeenGroup(group_id, reason=str(error))
    limit = application.max_pause_seconds
    return SeenGroup(group_id, found, health_of(control, found, now_ms=now_ms, max_pause_seconds=limit))
