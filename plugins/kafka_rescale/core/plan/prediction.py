"""What is predicted for an expansion before anything begins. An unknown value is None, never zero."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.values import Value


class Prediction(Value):
    """A prediction, to be shown beside the outcome.

    :param written_bytes: bytes to be written on all brokers at most, replicas included.
    :param copied_bytes: size on disk of the changelogs that are copied, each partition counted once.
    :param records: how many records are copied at most: the offsets of the changelogs.
    :param records_per_second: the pace that is assumed.
    :param pace_of: where that pace comes from, in words; empty if it is unknown.
    :param limit: bytes per second that the copy may use at most; None without a limit.
    :param copy_seconds: how long the restore jobs will take at that pace, and within the limit.
    :param pause: seconds per part of the pause in the previous expansion.
    """

    written_bytes: int | None = None
    copied_bytes: int | None = None
    records: int | None = None
    records_per_second: float | None = None
    pace_of: str = ""
    limit: int | None = None
    copy_seconds: float | None = None
    pause: dict[str, float] = Field(default_factory=dict)
