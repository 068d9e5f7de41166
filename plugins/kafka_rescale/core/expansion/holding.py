"""Held at the door: green's processes start ahead of the pause, and wait for their start offsets.

The pass is a number that belongs to one attempt. The cutover commits it to the gate's group as the "offset" of an
input, with the number of start offsets as its metadata. The group also has seats: partitions in whose metadata
held processes tell that they wait. ``HoldGate`` in the gate's jar is the other side of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.core.plan.plan import Plan

SILENT_SECONDS = 6.0
"""A held process tells every second that it waits; after so many seconds of silence it has ended."""
SETTLED_SECONDS = 10.0
"""How long to look for further processes if there are fewer than the running generation has."""

_TOLD = re.compile(r"by (\w+) (\d+) for (\d+)")
_THREAD = "-StreamThread-"


def pass_of(plan: Plan, number: int) -> tuple[PartitionOffsets, dict[str, dict[int, str]]]:
    """Return the offsets that hold green's processes, and the texts to commit as the offsets' metadata.

    :param number: number of the pass.
    """
    topic = plan.inputs[0].green_topic
    seats = max(plan.moves, key=lambda move: move.target_partitions, default=None)
    offsets: PartitionOffsets = {topic: {0: number}}
    texts = {topic: {0: f"hold {start_offsets(plan)}"}}
    if seats is not None:
        offsets[seats.target] = dict.fromkeys(range(seats.target_partitions), number)
        texts[seats.target] = dict.fromkeys(range(seats.target_partitions), "seat")
    return offsets, texts


def has_pass(plan: Plan, number: int, committed: PartitionOffsets) -> bool:
    """Return whether the gate's group has this pass.

    :param committed: the offsets of the group.
    """
    return bool(number) and committed.get(plan.inputs[0].green_topic, {}).get(0) == number


def start_offsets(plan: Plan) -> int:
    """Return how many offsets the promotion commits, for the partitions of inputs and repartition topics."""
    counts = {i.green_topic: i.target for i in plan.inputs}
    counts |= {m.target: m.target_partitions for m in plan.repartitions}
    return sum(counts.values())


def processes(members: Iterable[str]) -> int:
    """Return the number of processes whose threads are the members of a group; 0 if the names don't tell."""
    found = [member.partition(_THREAD) for member in members]
    return len({process for process, _, _ in found}) if all(thread for _, thread, _ in found) else 0


@dataclass
class Door:
    """The held processes that tell that they wait.

    :param number: number of the pass that they wait with.
    :param expected: how many there are likely to be; 0 if that is not known.
    """

    number: int
    expected: int = 0
    _beats: dict[str, tuple[int, float]] = field(default_factory=dict)
    _alive: set[str] = field(default_factory=set)
    _changed_at: float = 0.0

    def look(self, texts: OffsetTexts, now: float) -> None:
        """Take in what the gate's group tells.

        :param texts: metadata of the group.
        :param now: seconds of a clock that only goes forward.
        """
        for process, beats in _told(texts, self.number).items():
            known, _ = self._beats.get(process, (0, now))
            if beats <= known:
                continue
            self._beats[process] = beats, now
            # A beat seen once may come from a process that has ended. At a second, later beat the process lives.
            if known and process not in self._alive:
                self._alive.add(process)
                self._changed_at = now

    def waiting(self, now: float) -> int:
        """Return how many processes wait."""
        return sum(now - self._beats[process][1] <= SILENT_SECONDS for process in self._alive)

    def is_complete(self, now: float) -> bool:
        """Whether as many processes wait as are expected, or no further process has come for a while."""
        waiting = self.waiting(now)
        if self.expected and waiting >= self.expected:
            return True
        return waiting > 0 and now - self._changed_at >= SETTLED_SECONDS


def _told(texts: OffsetTexts, number: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for of in texts.values():
        for text in of.values():
            told = _TOLD.fullmatch(text)
            if told is not None and int(told[3]) == number:
                found[told[1]] = max(found.get(told[1], 0), int(told[2]))
    return found


def remark(timings: Mapping[str, float]) -> str:
    """Return one sentence on what a held start has saved, or would have saved; empty before the pause's end.

    :param timings: seconds per part of the pause.
    """
    if "total" not in timings:
        return ""
    if "release" in timings and "start" not in timings:
        return (
            "Held at the door: the new processes had started ahead of the pause, and joined "
            f"{timings['release']:.1f} s after their offsets were there."
        )
    if "start" not in timings:
        return ""
    return (
        f"Not held at the door: {timings['start']:.1f} s of the pause went by until the new processes had started "
        "and joined their group; `start_held` in `lifecycle:` starts them ahead of it."
    )
