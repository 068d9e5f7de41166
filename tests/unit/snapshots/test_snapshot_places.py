"""A day on other file systems than a local path: by a URI, in memory, and where directories can't be moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from kafka_rescale.core.errors import InvalidInput, Unreadable
from kafka_rescale.spark.snapshots.files import MANIFEST, StoreDirectory
from pyarrow import fs

from tests.support.snapshot_days import DAY, ENTRIES, STORE, complete_days, written


class ObjectStoreHandler(fs.FSSpecHandler):  # type: ignore[misc]
    """Moves only files, as Arrow's S3 does."""

    def move(self, src: str, dest: str) -> None:
        """Move a file."""
        if self.fs.isdir(src):
            raise OSError(f"{src} is no object")
        super().move(src, dest)


def in_memory(system: Any, root: str) -> StoreDirectory:
    """The snapshots of a store on a file system that has no URI of its own."""
    directory = StoreDirectory("memory:/x", "orders-app", STORE.name)
    directory.__dict__["_place"] = (system, root)
    return directory


@pytest.fixture(params=["file", "mock", "object store"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreDirectory:
    if request.param == "file":
        return StoreDirectory(tmp_path.as_uri(), "orders-app", STORE.name)
    if request.param == "mock":
        return in_memory(fs._MockFileSystem(), "bucket/orders-app/totals")
    return in_memory(
        fs.PyFileSystem(ObjectStoreHandler(MemoryFileSystem())), f"/{tmp_path.name}/orders-app/totals"
    )


def test_a_day_is_written_found_and_read(directory: StoreDirectory) -> None:
    manifest = written(directory, DAY, ENTRIES)
    written(directory, DAY.minus(1), ENTRIES[:1])
    assert complete_days(directory) == [DAY, DAY.minus(1)]
    assert directory.manifest(DAY) == manifest
    assert directory.read(DAY, manifest.partitions[0].file).num_rows == len(ENTRIES)


def test_a_day_that_is_written_again_is_replaced(directory: StoreDirectory) -> None:
    written(directory, DAY, ENTRIES[:1])
    manifest = written(directory, DAY, ENTRIES, token="2")
    assert directory.manifest(DAY) == manifest
    assert directory.read(DAY, manifest.partitions[0].file).num_rows == len(ENTRIES)
    directory.forget(DAY)
    assert complete_days(directory) == []


def test_an_attempt_that_was_killed_is_no_day(directory: StoreDirectory) -> None:
    directory.begin(DAY, "killed")
    assert complete_days(directory) == []
    written(directory, DAY, ENTRIES, token="next")
    assert complete_days(directory) == [DAY]


def test_a_day_without_its_manifest_has_its_draft_as_long_as_it_is_being_published(
    directory: StoreDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By this, another run that deletes old days knows that this one is not what a killed run has left."""
    written(directory, DAY, ENTRIES[:1])
    system, root = directory._place
    seen: list[set[str]] = []

    class Watched:
        """Looks at the files after each request."""

        def __getattr__(self, name: str) -> Any:
            def asked(*given: Any, **named: Any) -> Any:
                found = getattr(system, name)(*given, **named)
                infos = system.get_file_info(fs.FileSelector(root, recursive=True))
                seen.append({i.path.split(f"{DAY}")[-1] for i in infos} | {i.base_name[:7] for i in infos})
                return found

            return asked

    directory.__dict__["_place"] = (Watched(), root)
    written(directory, DAY, ENTRIES, token="2")
    assert seen
    for names in seen:
        assert "" not in names or f"/{MANIFEST}" in names or "_draft-" in names
    assert "_draft-" not in seen[-1]


def test_a_file_that_is_not_what_was_written_is_refused(directory: StoreDirectory) -> None:
    file = written(directory, DAY, ENTRIES).partitions[0].file
    system, root = directory._place
    with system.open_output_stream(f"{root}/date={DAY}/{file}") as stream:
        stream.write(b"PAR1")
    with pytest.raises(InvalidInput, match="other bytes than were written"):
        directory.read(DAY, file)
    system.delete_file(f"{root}/date={DAY}/{file}")
    with pytest.raises(Unreadable, match="again, without `from_scratch`"):
        directory.read(DAY, file)
