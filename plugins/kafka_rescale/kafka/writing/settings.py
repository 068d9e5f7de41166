"""The limits of transactions, and the settings of their producers."""

from __future__ import annotations

from typing import Any

LARGEST_MESSAGE_BYTES = 512 * 1024 * 1024
"""The topic's own ``max.message.bytes`` decides. This only raises librdkafka's limit, which is 1 MB by default."""

TRANSACTION_SECONDS = 60.0
"""``transaction.timeout.ms``. If a transaction is open for longer, its coordinator aborts it and fences the
producer."""

COMMIT_SECONDS = 5.0
"""If much is left to write, the open transaction is committed after this time and the next one begins."""

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
        # With sparse connections, it takes half a second or more to find the coordinator.
        "enable.sparse.connections": False,
        "delivery.report.only.error": True,
    }
