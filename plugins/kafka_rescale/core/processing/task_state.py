"""The state of a store that is kept between two runs, and whether the next run can begin with it.

A saved state is a base and deltas on top of it. It stands for an offset of the changelog: it is the state that the
records below that offset make. It is only a shortcut: if anything is wrong with it, the changelog is read instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from kafka_rescale.core.values import Value

FORMAT = 1
LEAST_ROWS = 10_000
"""If the deltas have fewer rows than this, no new base is written."""
MOST_DELTAS = 20
"""More deltas are written anew as one: each is a file that has to be read, however few rows it has."""


class SavedFile(Value):
    """One Parquet file of a saved state.

    :param sha256: of its bytes.
    """

    name: str
    rows: int
    sha256: str


class SavedState(Value):
    """The manifest of a saved state.

    :param topic_id: of the changelog; if it was made anew, its offsets are others.
    :param position: the next offset to read: the files hold the state that the records below it make.
    :param as_of_ms: wall clock at which no record behind the position had been deleted yet.
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
        """Return whether everything has to be written anew, because the deltas cost as much to read as a new base.

        :param rows: of the delta that would be added.
        """
        if not self.files:
            return True
        return sum(file.rows for file in self.files[1:]) + rows > max(LEAST_ROWS, self.files[0].rows // 2)

    @property
    def is_scattered(self) -> bool:
        """Whether another delta would be one too many."""
        return len(self.files) > MOST_DELTAS


MARKER = 1
"""The end of a transaction takes an offset behind its last record, and is no record itself."""


@dataclass(frozen=True)
class Changelog:
    """One partition of a changelog, as it is now.

    :param begin: log start.
    :param end: high watermark, exclusive.
    :param tombstone_ms: ``delete.retention.ms`` where it is compacted, else None.
    """

    topic: str
    topic_id: str
    partition: int
    begin: int
    end: int
    tombstone_ms: int | None


def objection(saved: SavedState, log: Changelog, now_ms: int) -> str:
    """Return why a saved state and the rest of the changelog would not make the present state; empty if they do.

    :param now_ms: wall clock.
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
    """Return the saved states that a run can begin with, the nearest to the end of the changelog first."""
    usable = [saved for saved in found if not objection(saved, log, now_ms)]
    return sorted(usable, key=lambda saved: (saved.position, saved.as_of_ms), reverse=True)


class TaskMark(Value):
    """What is committed as the metadata of a task's input offsets.

    :param at_ms: wall clock of the commit.
    :param checkpoint: of the task's processor: stream times, counters.
    :param processors: how many the sub-topology had, if that was more than at the beginning.
    """

    at_ms: int = 0
    checkpoint: str = ""
    processors: int = 0

    @classmethod
    def of(cls, metadata: str | None) -> TaskMark:
        """Return the mark of a committed offset; a mark of the beginning if the metadata is no mark."""
        try:
            return cls.model_validate_json(metadata or "")
        except ValidationError:
            return cls()
