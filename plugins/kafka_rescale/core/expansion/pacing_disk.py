"""Must a copy rest, because a disk with its copies becomes too full?

The rule is that of preflight, with what is written so far in place of what is to be written: of the bytes that
were usable before the copies, a part must stay free. Only log dirs with copies count, also those that take no new
replicas: the replicas in them go on growing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.control.pace import DiskRest
from kafka_rescale.core.values import listed

MORE = 10
"""A copy that rests goes on when a tenth more is usable than must stay free, so that it does not stop at once."""


def rest_of(
    disks: Disks, copies: Collection[str], percent: int, before: DiskRest | None, at_ms: int
) -> DiskRest | None:
    """Return why a copy has to rest; None if every log dir that is known has room.

    What is not known changes nothing: it begins no rest, and a rest goes on while its broker or its log dir tells
    nothing.

    :param disks: the newest reading.
    :param copies: topics that the expansion writes.
    :param percent: the part of the usable bytes, without the copies, that must stay free.
    :param before: the present rest.
    :param at_ms: wall clock.
    """
    if before is not None and (before.broker in disks.untold or _is_silent(before, disks)):
        return before
    found = [(each, _copied(each, copies)) for each in disks.log_dirs]
    full = [rest for each, copied in found if (rest := _rest(each, copied, percent, before, at_ms)) is not None]
    return min(full, key=lambda rest: rest.usable / rest.enough, default=None)


def untold(disks: Disks) -> Iterator[str]:
    """Yield the brokers and log dirs whose free space is not known, with the reason, each of brokers once."""
    reasons: dict[str, list[int]] = {}
    for broker, reason in disks.untold.items():
        reasons.setdefault(reason, []).append(broker)
    for reason, brokers in reasons.items():
        yield f"{_brokers(brokers)} ({reason})"
    silent = sorted({d.broker for d in disks.log_dirs if d.takes_replicas and d.usable is None})
    if silent:
        yield f"{_brokers(silent)} (its version does not tell usable bytes: Kafka 3.3 does, KIP-827)"
    for each in disks.log_dirs:
        if each.usable is None and not each.takes_replicas:
            yield f"log dir {each.path!r} of broker {each.broker} (it is offline)"


def _is_silent(of: DiskRest, disks: Disks) -> bool:
    """Return whether the log dir of a rest is there, and does not tell its space: most often it has failed."""
    return any((d.broker, d.path) == (of.broker, of.path) and d.usable is None for d in disks.log_dirs)


def _rest(log_dir: LogDir, copied: int, percent: int, before: DiskRest | None, at_ms: int) -> DiskRest | None:
    """Return the rest because of one log dir; None if it has room, or does not tell."""
    if log_dir.usable is None:
        return None
    # usable < percent % of (usable + copied), in whole bytes.
    least = _up(percent * copied, 100 - percent)
    enough = _up(percent * copied * (MORE + 1), (100 - percent) * MORE)
    if log_dir.usable >= (least if before is None else enough):
        return None
    return DiskRest(
        broker=log_dir.broker,
        path=log_dir.path,
        usable=log_dir.usable,
        total=log_dir.total,
        copied=copied,
        percent=percent,
        enough=enough,
        since_ms=before.since_ms if before is not None else at_ms,
    )


def _copied(log_dir: LogDir, copies: Collection[str]) -> int:
    return sum(count for (topic, _), count in log_dir.sizes.items() if topic in copies)


def _up(bytes_: int, parts: int) -> int:
    return -(-bytes_ // parts)


def _brokers(ids: list[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {listed([str(each) for each in sorted(ids)])}"
