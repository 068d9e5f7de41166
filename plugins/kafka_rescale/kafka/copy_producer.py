"""The producer of a unit: its settings, and what it means when a transaction was aborted."""

from __future__ import annotations

from typing import Any

from kafka_rescale.core.errors import Outage, RescaleError

LARGEST_MESSAGE_BYTES = 512 * 1024 * 1024
"""The topic's own ``max.message.bytes`` decides; this only keeps librdkafka's 1 MB from deciding first."""


class Rewound(Outage):
    """The transaction was aborted; the unit must be read again from its committed position.

    :param reason: why it was aborted, to raise if it happens again and again.
    """

    def __init__(self, reason: RescaleError) -> None:
        super().__init__(reason.what, found=reason.found, expected=reason.expected, remedy=reason.remedy)
        self.reason = reason


def producer_settings(transactional_id: str, batch_bytes: int) -> dict[str, Any]:
    """Return the settings of a unit's producer.

    :param batch_bytes: largest batch that the target accepts.
    """
    return {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 60_000,
        "message.max.bytes": LARGEST_MESSAGE_BYTES,
        "batch.size": batch_bytes,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 64 * 1024,
        "linger.ms": 5,
        # With the default of 100 a transaction of a few records took 0.15 s, with 5 it took 0.02 s (measured).
        "retry.backoff.ms": 5,
        # Otherwise finding the coordinator takes half a second or more.
        "enable.sparse.connections": False,
        "delivery.report.only.error": True,
    }
