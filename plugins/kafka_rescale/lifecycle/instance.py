"""The interface of a lifecycle, and the choice among its kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Instance:
    """One generation's instance set.

    :param application_id: its ``application.id``.
    :param generation: its number; the first is 1.
    :param partitions: the parallelism that it is started for.
    :param inputs: the topic to read as each input of the application file, by the name there.
    """

    application_id: str
    generation: int
    partitions: int
    inputs: Mapping[str, str] = field(default_factory=dict)


class Lifecycle(Protocol):
    """Starts and stops an instance set. Every call may be repeated and then changes nothing.

    A lifecycle may also have ``start_gated(instance)``; see ``factory.gated_start``.
    """

    def start(self, instance: Instance) -> None:
        """Start the instance set; return as soon as it has been launched.

        :raises Outage: it could not be started.
        """
        ...

    def stop(self, instance: Instance) -> None:
        """Stop the instance set cleanly; return when every process is gone.

        :raises Outage: it could not be stopped in time.
        """
        ...

    def is_running(self, instance: Instance) -> bool:
        """Return whether any of it runs, as the deployment (not Kafka) sees it."""
        ...
