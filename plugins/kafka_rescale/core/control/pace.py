"""The pace of an expansion: what people have ordered, and how fast each job therefore copies."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from kafka_rescale.core.application.pacing import FREE_DISK_PERCENT, Pacing
from kafka_rescale.core.values import Value


class Instruction(Value):
    """An order that a person has given about the pace.

    :param by: who has given it.
    :param at_ms: when it was noted, in ms since the epoch.
    :param asked_for_ms: when the person asked for it, if the task that noted it came later; 0 if not.
    :param reason: why, if the person has given a reason.
    """

    by: str
    at_ms: int
    reason: str = ""
    asked_for_ms: int = Field(default=0, exclude_if=lambda ms: not ms)


class Pace(Value):
    """The record of one expansion. It holds for all attempts at its plan.

    :param plan: fingerprint of the plan. Another plan has another record.
    :param limit: bytes of keys and values per second, over all tasks of a job; None without a limit.
    :param limited: who has set the limit; None if the limit is that of the application file.
    :param paused: who has paused the copy; None if it goes on.
    :param resumed: who has ended the last pause; None if the copy is paused or never was.
    :param tombstone_ms: how long the copying may be interrupted (``delete.retention.ms``), as of the pause; None
        if that is not bounded.
    :param free_disk_percent: that of the application file; None if the copy does not rest for the disks.
    """

    plan: str
    limit: int | None = None
    limited: Instruction | None = None
    paused: Instruction | None = None
    resumed: Instruction | None = Field(default=None, exclude_if=lambda word: word is None)
    tombstone_ms: int | None = None
    free_disk_percent: int | None = Field(
        default=FREE_DISK_PERCENT, exclude_if=lambda percent: percent == FREE_DISK_PERCENT
    )

    @classmethod
    def of(cls, plan: str, found: Pace | None) -> Pace:
        """Return the record of a plan; a record of another plan doesn't count."""
        return found if found is not None and found.plan == plan else cls(plan=plan)

    def declared(self, pacing: Pacing | None, free_disk_percent: int | None = FREE_DISK_PERCENT) -> Self:
        """Return the record with what the application file says. A limit that a person has set stays."""
        limit = pacing.bytes_per_second if pacing is not None else None
        changes = {"free_disk_percent": free_disk_percent, "limit": self.limit if self.limited else limit}
        return self.model_copy(update=changes)


class DiskRest(Value):
    """Why a job rests: a log dir with its copies is too full. Its driver goes on by itself when there is room.

    :param broker: node id of the log dir's broker.
    :param path: path of the log dir. If several are too full, it is the fullest.
    :param usable: bytes that the broker could still write there, by the last reading.
    :param total: bytes of the volume; None if the broker doesn't tell.
    :param copied: bytes of the copies there.
    :param percent: ``free_disk_percent`` of the application file.
    :param enough: with how many usable bytes the job goes on.
    :param since_ms: when the rest began.
    """

    broker: int
    path: str
    usable: int
    total: int | None = None
    copied: int
    percent: int
    enough: int
    since_ms: int


class Rate(Value):
    """How fast one job may copy now. Its driver writes it, and its tasks obey it.

    :param run: the run that holds the lease.
    :param attempt: number of the attempt at the run's task; a rate of another attempt means nothing.
    :param limit: bytes per second that the job may use at most; None without a limit.
    :param bytes_per_second: what all tasks together may copy now; None without a limit.
    :param is_paused: whether nothing is copied, because of a person or of a disk.
    :param tasks: how many tasks share the rate.
    :param slowed_by: why the rate is below the limit, in a sentence; empty if it isn't.
    :param slowed_ms: when it was last slowed down; 0 if it never was.
    :param unknown: what the driver could not read. The rate does not react to it.
    :param at_ms: when the rate was decided.
    :param disk: why the job rests; None if no log dir is too full.
    """

    run: str
    attempt: int
    limit: int | None = None
    bytes_per_second: int | None = None
    is_paused: bool = False
    tasks: int = 1
    slowed_by: str = ""
    slowed_ms: int = 0
    unknown: tuple[str, ...] = ()
    at_ms: int = 0
    disk: DiskRest | None = Field(default=None, exclude_if=lambda rest: rest is None)

    @property
    def share(self) -> float | None:
        """Bytes per second of one task; 0 in a pause, None without a limit."""
        if self.is_paused:
            return 0.0
        return None if self.bytes_per_second is None else self.bytes_per_second / max(1, self.tasks)
