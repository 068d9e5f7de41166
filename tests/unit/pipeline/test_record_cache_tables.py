"""With a record cache, the tables of a pipeline are those without it, except sessions with late records."""

from __future__ import annotations

import pytest
from kafka_rescale.core.pipeline.task import StoreDefinition

from tests.support.processing.pipeline_driver import PipelineDriver
from tests.support.processing.pipeline_programs import PROGRAMS, built, program_records

RECORDS, COMMITS = 150, (1, 20, 80)
ROOMY, NARROW = 10_485_760, 2_000
SESSION = "session"


def tables(program: str, cache_bytes: int = 0, commit: int = 0) -> dict[str, dict[bytes, bytes]]:
    """The keys and values of all stores, by their names."""
    driver = PipelineDriver(built(program), cache_bytes)
    driver.pipe_all(program_records(program, RECORDS), commit)
    return {
        name: {key: entry.value for key, entry in store.entries.items()} for name, store in driver.stores.items()
    }


def definitions(program: str) -> dict[str, StoreDefinition]:
    return {store.name: store for part in built(program).sub_topologies() for store in part.stores}


def kept(sessions: dict[bytes, bytes], retention_ms: int) -> dict[bytes, bytes]:
    """The sessions whose retention is not over."""
    ends = {key: int.from_bytes(key[-16:-8], "big") for key in sessions}
    return {key: value for key, value in sessions.items() if ends[key] > max(ends.values()) - retention_ms}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("cache_bytes", [ROOMY, NARROW])
def test_all_tables_but_sessions_are_those_without_a_cache(program: str, cache_bytes: int) -> None:
    names = {name for name, store in definitions(program).items() if store.kind != SESSION}
    without = tables(program)
    for commit in COMMITS:
        cached = tables(program, cache_bytes, commit)
        assert {name: cached[name] for name in names} == {name: without[name] for name in names}, commit


def test_sessions_with_late_records_depend_on_the_cache_and_on_its_commits() -> None:
    """Entries in the cache are never hidden, as in Kafka Streams. A late record may merge an expired session."""
    store = definitions("windowed_tables")["left-visits"]
    retention_ms = store.retention_ms or 0
    without = tables("windowed_tables")[store.name]
    by_commit = {commit: tables("windowed_tables", ROOMY, commit)[store.name] for commit in COMMITS}
    assert all(kept(found, retention_ms) != kept(without, retention_ms) for found in by_commit.values())
    assert by_commit[1] != by_commit[80]
