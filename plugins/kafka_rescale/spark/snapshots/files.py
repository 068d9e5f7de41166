"""The snapshots of one store: ``<location>/<application>/<store>/date=<day>/part-<partition>-<digest>.parquet``.

A day is written into a draft directory and moved to its place: as a whole, or with its manifest last. So a day
without a manifest is being written only if it has a draft. Without a draft, a killed run has left it. Spark and
Arrow pass over names that begin with an underscore, so they take neither a draft nor a manifest for rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pydantic import ValidationError

from kafka_rescale.core.errors import Complaint, InvalidInput, Outage, Unreadable
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.manifest import CANDIDATES, Manifest
from kafka_rescale.spark.jobs.arrow_place import arrow_place

MANIFEST = "_manifest.json"
_DAY, _DRAFT = "date=", "_draft-"
_DATE = len("2026-01-05")
_OWN = re.compile(rf"part-\d{{5,}}-[0-9a-f]{{16}}\.parquet|{re.escape(MANIFEST)}(\.new)?")
"""The names of the files of a day. Earlier versions moved the manifest from the second name to the first."""
_DIGEST_BYTES, _COLUMN_BYTES = 8 << 20, 1 << 20
"""How much of a file is read at a time: for its digest, and of each column for its rows."""


@dataclass(frozen=True)
class StoreDirectory:
    """The snapshots of one store.

    :param location: location that the application file names.
    """

    location: str
    application: str
    store: str

    @classmethod
    def all_of(cls, location: str, application: str) -> list[StoreDirectory]:
        """Return the directories of all stores of an application, also of stores that are no longer declared."""
        system, root = arrow_place("snapshots.location", location, application)
        return [cls(location, application, name) for name in _directories(system, root)]

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return arrow_place("snapshots.location", self.location, f"{self.application}/{self.store}")

    @property
    def uri(self) -> str:
        """The URI that a reader uses."""
        return f"{self.location}/{self.application}/{self.store}"

    def days(self) -> list[SnapshotDay]:
        """Return the days that have a directory, the newest first, be they complete or not."""
        found = (_day_named(name.removeprefix(_DAY)) for name in self._children(_DAY))
        return sorted((day for day in found if day is not None), reverse=True)

    def drafts(self) -> dict[str, SnapshotDay]:
        """Return the names of the drafts, with their days. A run is writing such a day, or was killed before."""
        named = [name for name in self._children(_DRAFT) if name.removeprefix(_DRAFT)[_DATE:].startswith("-")]
        found = {name: _day_named(name.removeprefix(_DRAFT)[:_DATE]) for name in named}
        return {name: day for name, day in found.items() if day is not None}

    def written_ms(self, draft: str) -> int | None:
        """Return when something was last written into a draft, in ms since the epoch; None if that is not known.

        An object store keeps no times of directories, so an empty draft there has none.
        """
        system, root = self._place
        inside = fs.FileSelector(f"{root}/{draft}", allow_not_found=True, recursive=True)
        infos = [system.get_file_info(f"{root}/{draft}"), *system.get_file_info(inside)]
        times = [info.mtime_ns for info in infos if info.mtime_ns is not None]
        return max(times) // 1_000_000 if times else None

    def newest(
        self,
        fits: Callable[[Manifest], bool],
        *,
        tell: Callable[[Unreadable], None],
        before: SnapshotDay | None = None,
        count: int = CANDIDATES,
    ) -> list[Manifest]:
        """Return the newest complete days that fit. There may be years of days: no more are opened than need be.

        :param tell: called with each day that can't be looked at. After three such days, no more are tried.
        :param before: only days before this day.
        :param count: at most so many.
        """
        found: list[Manifest] = []
        unreadable = 0
        for day in (day for day in self.days() if before is None or day < before):
            if len(found) == count or unreadable == CANDIDATES:
                break
            try:
                manifest = self.manifest(day, fits)
            except Unreadable as error:
                unreadable += 1
                tell(error)
            else:
                found += [manifest] if manifest else []
        return found

    def manifest(self, day: SnapshotDay, fits: Callable[[Manifest], bool] = lambda _: True) -> Manifest | None:
        """Return a day's manifest; None if there is none that fits, or if some of its files are not there.

        :raises Unreadable: the day can't be looked at, at the moment or at all.
        """
        system, root = self._place
        directory = f"{root}/{_DAY}{day}"
        try:
            with system.open_input_stream(f"{directory}/{MANIFEST}") as stream:
                manifest = Manifest.model_validate_json(stream.read())
            if not fits(manifest):
                return None
            # One request, however many files there are.
            infos = system.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        except (FileNotFoundError, ValidationError):
            return None
        except OSError as error:
            raise Unreadable.of(self._unusable(day, MANIFEST, str(error)[:300])) from None
        there = {info.base_name for info in infos if info.type == fs.FileType.File}
        return manifest if there.issuperset(p.file for p in manifest.partitions if p.file) else None

    def is_own(self, day: SnapshotDay) -> bool:
        """Return whether runs for this store have written the day, or what is left of it."""
        try:
            manifest = self.manifest(day)
        except Unreadable:
            manifest = None
        if manifest is not None:
            return (manifest.application, manifest.store.name) == (self.application, self.store)
        system, root = self._place
        infos = system.get_file_info(fs.FileSelector(f"{root}/{_DAY}{day}", allow_not_found=True))
        return all(info.type == fs.FileType.File and _OWN.fullmatch(info.base_name) for info in infos)

    def begin(self, day: SnapshotDay, token: str) -> str:
        """Create a draft of a day; delete the drafts that earlier attempts have left.

        :param token: unique to this attempt.
        """
        system, root = self._place
        for name in self._children(f"{_DRAFT}{day}-"):
            system.delete_dir(f"{root}/{name}")
        draft = f"{_DRAFT}{day}-{token}"
        system.create_dir(f"{root}/{draft}", recursive=True)
        return draft

    def write(self, draft: str, partition: int, rows: Any) -> str:
        """Write the rows of a partition and return the file's name; equal rows make an equal file."""
        system, root = self._place
        buffer = pa.BufferOutputStream()
        # With checksums, a page that differs from what the digest was compared with is not taken for rows.
        pq.write_table(rows, buffer, compression="zstd", write_page_checksum=True)
        content = buffer.getvalue()
        name = f"part-{partition:05d}-{_digest([content])}.parquet"
        with system.open_output_stream(f"{root}/{draft}/{name}") as stream:
            stream.write(content)
        return name

    def read(self, day: SnapshotDay, file: str) -> Any:
        """Return the rows of one file of a day.

        :raises InvalidInput: the bytes of the file differ from the digest in its name.
        :raises Unreadable: the file can't be read, at the moment or at all.
        """
        system, root = self._place
        try:
            with system.open_input_stream(f"{root}/{_DAY}{day}/{file}") as stream:
                content = stream.read()
        except OSError as error:
            raise Unreadable.of(self._unusable(day, file, str(error)[:300])) from None
        self._assert_digest(day, file, [content])
        return pq.ParquetFile(pa.BufferReader(content)).read()

    def check(self, day: SnapshotDay, file: str) -> None:
        """Compare the bytes of one file of a day with the digest in its name, and keep none of them.

        :raises InvalidInput: as ``read``.
        """
        system, root = self._place
        try:
            with system.open_input_stream(f"{root}/{_DAY}{day}/{file}") as stream:
                self._assert_digest(day, file, iter(lambda: stream.read(_DIGEST_BYTES), b""))
        except OSError as error:
            raise Unreadable.of(self._unusable(day, file, str(error)[:300])) from None

    def batches(self, day: SnapshotDay, file: str, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield the rows of one file of a day, for which ``check`` has been called.

        In memory there are only the pages of these rows, however large the file and its row groups are.

        :param rows: at most so many at a time.
        :raises Outage: the file can't be read any more.
        """
        system, root = self._place
        try:
            with system.open_input_file(f"{root}/{_DAY}{day}/{file}") as source:
                # Arrow would fetch the columns of a whole row group ahead, and without a buffer a whole column.
                parquet = pq.ParquetFile(
                    source, pre_buffer=False, buffer_size=_COLUMN_BYTES, page_checksum_verification=True
                )
                yield from parquet.iter_batches(rows, columns=list(columns), use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise Outage(
                f"snapshot {self.uri}/{_DAY}{day}/{file}",
                found=f"a file that can't be read any more: {error}"[:300],
                expected="the bytes whose digest was right before the first row was written",
                remedy="Nothing to do here: the next attempt begins this copy anew, with another day if need be.",
            ) from None

    def publish(self, draft: str, manifest: Manifest) -> None:
        """Move a draft to the place of its day. On an object store, the day is whole only with its manifest."""
        system, root = self._place
        with system.open_output_stream(f"{root}/{draft}/{MANIFEST}") as stream:
            stream.write(manifest.model_dump_json(indent=1).encode())
        self.forget(manifest.day)
        _move_directory(system, f"{root}/{draft}", f"{root}/{_DAY}{manifest.day}")

    def forget(self, day: SnapshotDay) -> None:
        """Delete a day, its manifest first."""
        system, root = self._place
        place = f"{root}/{_DAY}{day}"
        if system.get_file_info(place).type != fs.FileType.Directory:
            return
        if system.get_file_info(f"{place}/{MANIFEST}").type == fs.FileType.File:
            system.delete_file(f"{place}/{MANIFEST}")
        system.delete_dir(place)

    def discard(self, draft: str) -> None:
        """Delete a draft."""
        system, root = self._place
        if system.get_file_info(f"{root}/{draft}").type == fs.FileType.Directory:
            system.delete_dir(f"{root}/{draft}")

    def _assert_digest(self, day: SnapshotDay, file: str, content: Iterable[Any]) -> None:
        if _digest(content) not in file:
            raise InvalidInput.of(self._unusable(day, file, "other bytes than were written"))

    def _unusable(self, day: SnapshotDay, file: str, found: str) -> Complaint:
        return Complaint(
            f"snapshot {self.uri}/{_DAY}{day}/{file}",
            found=found,
            expected="the file as it was written, readable wherever a task runs",
            remedy="Run that day's snapshot again, without `from_scratch`: it is replaced as a whole.",
        )

    def _children(self, prefix: str) -> Iterator[str]:
        system, root = self._place
        yield from (name for name in _directories(system, root) if name.startswith(prefix))


def _directories(system: Any, root: str) -> list[str]:
    infos = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(info.base_name for info in infos if info.type == fs.FileType.Directory)


def _day_named(text: str) -> SnapshotDay | None:
    """Return the day of a directory; None for another name, such as that of a copy that a person has made."""
    try:
        day = SnapshotDay.named(text)
    except InvalidInput:
        return None
    return day if str(day) == text else None


def _move_directory(system: Any, source: str, target: str) -> None:
    """Move a directory as a whole; on stores without directories (S3, GCS), its files, the manifest last."""
    try:
        system.move(source, target)
    except OSError:
        system.create_dir(target, recursive=True)
        files = system.get_file_info(fs.FileSelector(source))
        for file in sorted(files, key=lambda file: (file.base_name == MANIFEST, file.base_name)):
            system.move(file.path, f"{target}/{file.base_name}")
        system.delete_dir(source)


def _digest(content: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for block in content:
        digest.update(block)
    return digest.hexdigest()[:16]
