"""Client settings that survive the restart of brokers."""

from __future__ import annotations

RESILIENT: dict[str, str | int] = {
    # With librdkafka 2.16's default, "rebootstrap", a producer whose only broker restarts never finds its
    # transaction coordinator again: send_offsets_to_transaction(timeout=20) had not returned after 60 s.
    "metadata.recovery.strategy": "none",
    # 10 s by default: commits went on 8 to 10 s after the broker was back, and with this within 1 s (measured).
    "reconnect.backoff.max.ms": 1_000,
}
