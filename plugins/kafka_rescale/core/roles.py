"""The parts of the work that can have a Kafka principal of their own."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A part of the work that can have a Kafka connection, hence a principal, of its own.

    ``plan`` only reads. ``copy`` is for the long Spark jobs, and for the gates, which keep their readings.
    ``admin`` makes, grows and deletes topics and moves offsets. ``verify`` reads both generations and leaves its
    report.
    """

    PLAN = "plan"
    COPY = "copy"
    ADMIN = "admin"
    VERIFY = "verify"
