"""The saved state of a store between two runs, and the question whether the next run can begin with it.

A saved state is a base and deltas on top of the base. It stands for an offset of the changelog: it is the state
that the records below this offset make. A saved state is only a shortcut. If anything is wrong with it, the next
run reads the changelog instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from kafka_rescale.core.values import Value

FORMAT = 1
LEAST_ROWS = 10_000
"""No new base is written as long as the deltas have no more rows than this."""
MOST_DELTAS = 20
"""More deltas are written anew as one delta: a run has to read each file, however few rows the file has."""


class SavedFile(Value):
    """One Parquet file of a saved state.

    :param sha256: the hash of the file's bytes.
    """

    name: str
    rows: int
    sha256: str


class SavedState(Value):
    """The manifest of a saved state.

    :param topic_id: the id of the changelog. A changelog that was deleted and made anew has other offsets.
    :param position: the next offset to read. The files hold the state that the records below it make.
    :param as_of_ms: a wall clock in ms. At this time, no record at or behind the position had been deleted yet.
    :param files: the base first, then the deltas in their order.
    """

    format: int = FORMAT
    topic: str
    topic_id: str
    partition: int
    position: int
    as_of_ms: int
    files: tuple[SavedFile, ...] = ()

    def needs_base(self, rows: int) -> bool:
        """Return whether the next save has to write a new base, because the deltas are large beside the old one.

        :param rows: the number of rows of the delta that would be added.
        """
        if not self.files:
            return True
        return sum(file.rows for file in self.files[1:]) + rows > max(LEAST_ROWS, self.files[0].rows // 2)

    @property
    def is_scattered(self) -> bool:
        """Whether one more delta would be too many. Then the deltas are written anew as one delta."""
        return len(self.files) > MOST_DELTAS


MARKER = 1
"""The offsets that the end of a transaction takes behind its last record. The marker is no record itself."""


@dataclass(frozen=True)
class Changelog:
    """One partition of a changelog, as it is now.

    :param begin: the log start.
    :param end: the high watermark (exclusive).
    :param tombstone_ms: ``delete.retention.ms`` if the topic is compacted, else None.
    """

    topic: str
    topic_id: str
    partition: int
    begin: int
    end: int
    tombstone_ms: int | None


def objection(saved: SavedState, log: Changelog, now_ms: int) -> str:
    """Return why a saved state and the rest of the changelog do not make the present state. Empty if they do.

    :param now_ms: the wall clock.
    """
    return next(_objections(saved, log, now_ms), "")


def _objections(saved: SavedState, log: Changelog, now_ms: int) -> Iterator[str]:
    if saved.format != FORMAT:
        yield f"it is of format {saved.format}"
    if (saved.topic, saved.partition) != (log.topic, log.partition):
        yield f"it is of {saved.topic}-{saved.partition}"
    if saved.topic_id != log.topic_id:
        yield "the changelog was deleted and made anew since"
    if saved.position > log.end:
        yield f"it stands for offset {saved.position}, and the changelog ends at {log.end}"
    if log.end - saved.position <= MARKER:
        return
    if saved.position < log.begin:
        yield f"it stands for offset {saved.position}, and the changelog begins at {log.begin}"
    if log.tombstone_ms is not None and now_ms - saved.as_of_ms >= log.tombstone_ms:
        yield "deletions since may have been compacted away (delete.retention.ms)"


def newest(found: Iterable[SavedState], log: Changelog, now_ms: int) -> list[SavedState]:
    """Return the saved states that a run can begin with. The one nearest to the changelog's end comes first."""
    usable = [saved for saved in found if not objection(saved, log, now_ms)]
    return sorted(usable, key=lambda saved: (saved.position, saved.as_of_ms), reverse=True)


class TaskMark(Value):
    """The metadata that is committed with a task's input offsets.

    :param at_ms: the wall clock of the commit.
    :param checkpoint: the checkpoint of the task's processor: stream times and counters.
    :param processors: the number of processors that the sub-topology had. 0 if it had as many as at the beginning.
    """

    at_ms: int = 0
    checkpoint: str = ""
    processors: int = 0

    @classmethod
    def of(cls, metadata: str | None) -> TaskMark:
        """Return the mark of a committed offset. If the metadata is no mark, return the mark of the beginning."""
        try:
            return cls.model_validate_json(metadata or "")
        except ValidationError:
            return cls()
