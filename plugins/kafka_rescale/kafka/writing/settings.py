"""The limits of transactions, and the settings of their producers."""

from __future__ import annotations

from typing import Any

LARGEST_MESSAGE_BYTES = 512 * 1024 * 1024
"""The topic's own ``max.message.bytes`` decides; this only lifts librdkafka's default of 1 MB."""

TRANSACTION_SECONDS = 60.0
"""``transaction.timeout.ms``: a transaction that is open for longer is aborted by its coordinator, and fenced."""

COMMIT_SECONDS = 5.0
"""A transaction is ended after this time, if there is much more to write."""

MIB = 1024 * 1024
BATCH_BYTES = 1_000_000


def producer_settings(transactional_id: str, batch_bytes: int) -> dict[str, Any]:
    """Return the settings of a unit's producer.

    :param batch_bytes: largest batch that the target accepts.
    """
    return {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": round(TRANSACTION_SECONDS * 1000),
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
