"""How far a comparison is: what is read, what is compared, and when the rest will be, if that is known.

Spark reads all records of a plan first, then sorts and compares them. It counts what it reads, and says nothing
of the sorting. So what is read is not compared yet, and only parts that are compared show a pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rescale.core.verify.parts import Part


@dataclass(frozen=True)
class PartState:
    """How far one part is.

    :param share: how much of its logs has been read, from 0 to 1; 1 only if nothing of them is left to be read.
    :param is_compared: whether there is a report of it.
    :param is_ours: whether this attempt compares it.
    """

    part: Part
    share: float = 0.0
    is_compared: bool = False
    is_ours: bool = True

    @property
    def records(self) -> int:
        """How many records of green it has, at most."""
        return self.part.records


def seconds_left(states: Sequence[PartState], seconds: float, last_compared: float) -> float | None:
    """Return how long the rest takes at the pace of what this attempt has compared; None if that is not known.

    It is not known before a part is compared, nor if the next part takes longer than the pace lets expect.

    :param seconds: how long this attempt has been at work.
    :param last_compared: how long it had been at work when it had compared its newest part.
    """
    compared = sum(s.records for s in states if s.is_compared and s.is_ours)
    left = sum(s.records for s in states if not s.is_compared)
    if not compared or not left:
        return None
    rest = left * last_compared / compared - (seconds - last_compared)
    return rest if rest > 0 else None


def told_of(states: Sequence[PartState], rest: float | None = None) -> str:
    """Return how much of green is read and compared, in a sentence.

    :param rest: how many seconds the rest takes; None if that is not known.
    """
    total = sum(s.records for s in states)
    if all(s.is_compared for s in states):
        return f"{total:,} of {total:,} records compared"
    read = sum(int(s.share * s.records) for s in states)
    compared = sum(s.records for s in states if s.is_compared)
    told = [f"{read:,} of {total:,} records read" if read else f"none of {total:,} records read yet"]
    told += [f"{compared:,} compared"] if compared else []
    told += ["Spark sorts and compares the others that are read"] if _is_sorting(states) and compared else []
    told += ["Spark sorts and compares them"] if _is_sorting(states) and not compared else []
    told += [f"about {rest:,.0f} s left"] if rest is not None else []
    return ", ".join(told)


def _is_sorting(states: Sequence[PartState]) -> bool:
    """Whether Spark has read all that it has begun to read, and not compared all of it."""
    begun = [s for s in states if s.share > 0 and not s.is_compared]
    return bool(begun) and all(s.share == 1 for s in begun)
