"""The interface of a lifecycle."""

from __future__ import annotations

from typing import Protocol

from kafka_rescale.core.application.instance import Instance

__all__ = ["Instance", "Lifecycle"]


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
