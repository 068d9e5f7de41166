"""The interface of a lifecycle."""

from __future__ import annotations

from typing import Protocol

from kafka_rescale.core.application.instance import Instance

__all__ = ["Instance", "Lifecycle"]


class Lifecycle(Protocol):
    """Starts and stops an instance set. A call may be repeated; the repetition changes nothing.

    A lifecycle may also have the methods ``start_gated(instance)`` and ``start_held(instance)``; see
    ``factory.gated_start`` and ``factory.held_start``.
    """

    def start(self, instance: Instance) -> None:
        """Start the instance set and return as soon as it has been launched.

        :raises Outage: the instance set could not be started.
        """
        ...

    def stop(self, instance: Instance) -> None:
        """Stop the instance set cleanly and return when every process is gone.

        :raises Outage: the instance set could not be stopped in time.
        """
        ...

    def is_running(self, instance: Instance) -> bool:
        """Return whether any instance of the set runs.

        The deployment gives the answer, not Kafka.
        """
        ...
