"""How far the copy of one partition is."""

from __future__ import annotations

from kafka_rescale.core.values import Value


class PartitionProgress(Value):
    """How far the copy of one source partition is. ``records`` and ``bytes`` count this attempt only."""

    topic: str
    partition: int
    position: int
    end: int
    records: int = 0
    bytes: int = 0
