"""The saved states of one store of one task: ``<location>/<application.id>/<task>/<store>/``.

The Parquet files are written first. Then their manifest is written under a temporary name and renamed: files
without a manifest don't count. Names carry the changelog offset that they stand for. A process that was thought
dead can at worst leave an older manifest, or delete a file that a newer manifest names. A reader notices that.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pydantic import ValidationError

from kafka_rescale.core.processing.task_state import SavedFile, SavedState
from kafka_rescale.spark.jobs.arrow_place import arrow_place
from kafka_rescale.spark.processing.state_store import SCHEMA, TaskStore

log = logging.getLogger(__name__)

MANIFEST = "manifest-"
KEPT = 2
"""How many manifests are kept. If the newest turns out to be damaged, an older manifest is used."""


@dataclass(frozen=True)
class StateFiles:
    """The place of the saved states of one store of one task.

    :param location: an absolute path, or a URI that Arrow can write to.
    :param owner: ``<application.id>/<task>/<store>``.
    """

    location: str
    owner: str

    @classmethod
    def of(cls, state_dir: str, application_id: str, task: object, store: str) -> Self:
        """Return the place where a client keeps one store of a task."""
        return cls(state_dir, f"{application_id}/{task}/{store}")

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return arrow_place("state.dir", self.location, self.owner)

    def create(self) -> None:
        """Make the directory.

        :raises OSError: the directory can't be made there.
        """
        system, root = self._place
        system.create_dir(root, recursive=True)

    def is_there(self) -> bool:
        """Return whether the directory exists.

        :raises OSError: the place can't be read.
        """
        system, root = self._place
        return bool(system.get_file_info(root).type == fs.FileType.Directory)

    def found(self) -> list[SavedState]:
        """Return every manifest that can be read."""
        return [state for name in self._names(MANIFEST) if (state := self._manifest(name)) is not None]

    def load(self, saved: SavedState, into: TaskStore) -> str:
        """Put a saved state into a store; return what is wrong with its files, or an empty text."""
        tables = []
        for file in saved.files:
            try:
                content = self._content(file.name)
                if hashlib.sha256(content).hexdigest() != file.sha256:
                    return f"{file.name} has another checksum than its manifest says"
                tables.append(pq.read_table(pa.BufferReader(content)).cast(SCHEMA))
            except (OSError, pa.ArrowException) as error:
                return f"{file.name}: {error}"[:300]
        into.load(tables[0] if tables else SCHEMA.empty_table(), tables[1:])
        return ""

    def save(self, store: TaskStore, before: SavedState | None, state: SavedState) -> SavedState:
        """Save the changes as a delta, or everything once the deltas have outgrown their base.

        If there are many deltas, one delta takes their place.

        :param before: the saved state that the store began with; None saves everything.
        :param state: the manifest, without its files; they are filled in here.
        """
        self.create()
        changed = store.unsaved()
        if before is None or before.needs_base(changed.num_rows):
            files: tuple[SavedFile, ...] = (self._write("base", state.position, store.all_rows()),)
        elif changed.num_rows and before.is_scattered:
            files = (before.files[0], self._write("delta", state.position, store.changed()))
        elif changed.num_rows:
            files = (*before.files, self._write("delta", state.position, changed))
        else:
            files = before.files
        saved = state.model_copy(update={"files": files})
        self._publish(saved)
        store.saved()
        self._tidy(saved)
        return saved

    def _write(self, kind: str, position: int, rows: Any) -> SavedFile:
        buffer = pa.BufferOutputStream()
        pq.write_table(rows, buffer, compression="zstd", use_dictionary=False, write_statistics=False)
        content = buffer.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        name = f"{kind}-{position:020d}-{digest[:16]}.parquet"
        self._put(name, content)
        return SavedFile(name=name, rows=rows.num_rows, sha256=digest)

    def _publish(self, saved: SavedState) -> None:
        content = saved.model_dump_json(indent=1).encode()
        self._put(f"{MANIFEST}{saved.position:020d}-{_digest(content)}.json", content)

    def _put(self, name: str, content: Any) -> None:
        """Write a file; it gets its name only when it is whole."""
        system, root = self._place
        draft = f"{root}/_{name}"
        with system.open_output_stream(draft) as stream:
            stream.write(content)
        system.move(draft, f"{root}/{name}")

    def _content(self, name: str) -> Any:
        system, root = self._place
        with system.open_input_stream(f"{root}/{name}") as stream:
            return stream.read()

    def _manifest(self, name: str) -> SavedState | None:
        try:
            content = self._content(name)
            if _digest(content) not in name:
                raise OSError("another checksum than its name says")
            return SavedState.model_validate_json(content)
        except (OSError, ValidationError) as error:
            log.warning("%s/%s can't be used: %s", self.owner, name, error)
            return None

    def _tidy(self, saved: SavedState) -> None:
        """Delete files that no kept manifest refers to. A failure to delete is only logged.

        Only files for an earlier offset, or for the same offset at an earlier time, are deleted, because a newer
        process may be at work here.
        """
        system, root = self._place
        older = f"{saved.position:020d}"
        manifests = {name: self._manifest(name) for name in self._names(MANIFEST)}
        gone = [n for n, state in manifests.items() if state is None and n.removeprefix(MANIFEST) < older]
        known = {name: state for name, state in manifests.items() if state is not None}
        oldest = sorted(known, key=lambda name: _age(known[name]))[:-KEPT]
        gone += [name for name in oldest if _age(known[name]) < _age(saved)]
        used = {file.name for name, state in known.items() if name not in gone for file in state.files}
        gone += [n for n in self._names("base-", "delta-") if n not in used and n.partition("-")[2] < older]
        for name in gone:
            try:
                system.delete_file(f"{root}/{name}")
            except OSError as error:
                log.warning("%s/%s is left: %s", self.owner, name, error)

    def _names(self, *prefixes: str) -> Iterator[str]:
        system, root = self._place
        selector = fs.FileSelector(root, allow_not_found=True)
        names = [info.base_name for info in system.get_file_info(selector)]
        yield from (name for name in names if name.startswith(prefixes))


def _age(state: SavedState) -> tuple[int, int]:
    """Order manifests of one offset by time: standbys confirm again and again that no later record was deleted."""
    return state.position, state.as_of_ms


def _digest(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
