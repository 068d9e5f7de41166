"""Days as directories of Parquet: written as a whole, replaced identically, and readable with common tools."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pandas as pd
import pytest
from fastavro import parse_schema, schemaless_writer
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.manifest import Manifest, PartitionSnapshot, base_for
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule
from kafka_rescale.core.snapshots.tail import Tail
from kafka_rescale.spark.snapshots.columns import decoded, state_after, table_of
from kafka_rescale.spark.snapshots.files import MANIFEST, StoreDirectory

from tests.support.snapshot_days import AT_MS, DAY, ENTRIES, STORE, complete_days, manifest_of, written


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    return StoreDirectory(str(tmp_path), "orders-app", STORE.name)


def place(directory: StoreDirectory) -> Path:
    return Path(directory.location) / "orders-app" / STORE.name


def test_pandas_reads_the_days_as_one_table(directory: StoreDirectory) -> None:
    written(directory, DAY, ENTRIES)
    written(directory, DAY.minus(1), ENTRIES[:1])
    table = pd.read_parquet(directory.uri)
    assert sorted(zip(table["date"].astype(str), table["decoded_key"], table["decoded_value"], strict=True)) == [
        ("2026-01-04", "b", 2),
        ("2026-01-05", "a", 1),
        ("2026-01-05", "b", 2),
    ]
    assert set(table["partition"]) == {3}
    assert table["timestamp"].max() == datetime.fromtimestamp((AT_MS + 5) / 1000, UTC)


def test_headers_and_offsets_are_kept(directory: StoreDirectory) -> None:
    row = table_of(ENTRIES, 3, STORE).to_pylist()[0]
    assert row["headers"] == [{"key": "trace", "value": b"x"}, {"key": "empty", "value": None}]
    assert (row["offset"], row["key"], row["value"]) == (7, b"b", struct.pack(">q", 2))


def test_a_day_that_is_written_again_is_the_same_byte_for_byte(directory: StoreDirectory) -> None:
    first = written(directory, DAY, ENTRIES)
    before = {f.name: f.read_bytes() for f in place(directory).rglob("*") if f.is_file()}
    assert written(directory, DAY, ENTRIES, token="2") == first
    assert {f.name: f.read_bytes() for f in place(directory).rglob("*") if f.is_file()} == before


def test_an_attempt_that_was_killed_leaves_nothing_that_a_reader_sees(directory: StoreDirectory) -> None:
    written(directory, DAY, ENTRIES)
    draft = directory.begin(DAY.minus(1), "killed")
    directory.write(draft, 3, table_of(ENTRIES, 3, STORE))
    assert len(pd.read_parquet(directory.uri)) == len(ENTRIES)
    assert complete_days(directory) == [DAY]
    directory.begin(DAY.minus(1), "next")
    assert not (place(directory) / draft).exists()


def test_a_day_without_its_manifest_is_none(directory: StoreDirectory) -> None:
    written(directory, DAY, ENTRIES)
    (place(directory) / f"date={DAY}" / MANIFEST).unlink()
    assert complete_days(directory) == []


def test_a_manifest_of_other_files_is_none(directory: StoreDirectory) -> None:
    manifest = written(directory, DAY, ENTRIES)
    (place(directory) / f"date={DAY}" / manifest.partitions[0].file).rename(place(directory) / "elsewhere")
    assert directory.manifest(DAY) is None


def test_a_day_can_be_forgotten_and_one_that_is_not_there_too(directory: StoreDirectory) -> None:
    written(directory, DAY, ENTRIES)
    directory.forget(DAY)
    directory.forget(DAY)
    assert complete_days(directory) == []


def test_a_location_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a place that Arrow can write to"):
        complete_days(StoreDirectory("gopher://x/y", "a", "b"))


class TestRows:
    RULE = SnapshotRule(DAY.end_ms)

    def test_a_state_is_an_earlier_one_with_what_has_come_since(self) -> None:
        base = table_of([*ENTRIES, Entry(b"c", bytes(8), AT_MS, 10)], 3, STORE)
        tail = Tail(self.RULE)
        for entry in (
            Entry(b"b", None, AT_MS, 11),
            Entry(b"a", bytes(8), AT_MS, 12),
            Entry(b"0", bytes(8), AT_MS, 13),
        ):
            assert tail.add(entry)
        found = state_after(base, tail, 3, STORE)
        assert list(zip(found["decoded_key"].to_pylist(), found["offset"].to_pylist(), strict=True)) == [
            ("0", 13),
            ("a", 12),
            ("c", 10),
        ]

    @pytest.mark.parametrize("column", ["key", "value"])
    def test_two_schemas_of_a_registry_are_not_read_as_one(self, column: str) -> None:
        def entry(key: bytes, schema: int, offset: int) -> Entry:
            framed = b"\0" + schema.to_bytes(4, "big") + b"\x02" + key
            return Entry(framed, b"v", AT_MS, offset) if column == "key" else Entry(key, framed, AT_MS, offset)

        store = STORE.model_copy(update={"key": "", "value": "", column: 'avro-confluent:"string"'})
        base, tail = table_of([entry(b"a", 17, 1), entry(b"b", 17, 2)], 3, store), Tail(self.RULE)
        assert state_after(base, tail, 3, store).num_rows == 2
        assert tail.add(entry(b"c", 23, 3))
        with pytest.raises(UnsafeState, match=rf"found {column}s .* \(ids \[17, 23\]\); .*<id>=<schema file>"):
            state_after(base, tail, 3, store)

    def test_a_file_does_not_tell_from_which_day_it_was_made(self, directory: StoreDirectory) -> None:
        whole, rest = Tail(self.RULE), Tail(self.RULE)
        for entry in ENTRIES:
            assert whole.add(entry)
        assert rest.add(ENTRIES[1])
        draft = directory.begin(DAY.minus(1), "base")
        earlier = directory.write(draft, 3, table_of(ENTRIES[:1], 3, STORE))
        directory.publish(draft, manifest_of(DAY.minus(1)))
        base = directory.read(DAY.minus(1), earlier)
        draft = directory.begin(DAY, "x")
        names = [directory.write(draft, 3, state_after(b, t, 3, STORE)) for b, t in ((None, whole), (base, rest))]
        assert names[0] == names[1] != earlier

    def test_a_serde_that_is_declared_later_decodes_earlier_days_too(self) -> None:
        plain = STORE.model_copy(update={"key": "", "value": ""})
        assert "decoded_key" not in table_of(ENTRIES, 3, plain).column_names
        assert decoded(table_of(ENTRIES, 3, plain), STORE)["decoded_value"].to_pylist() == [2, 1]
        assert plain.same_rows(STORE)
        assert not plain.same_rows(STORE.model_copy(update={"store_type": "window"}))

    def test_logical_types_are_read_where_avro_means_them(self) -> None:
        """UUIDs are texts, at any depth. On another type, a logical type has to be ignored."""
        fields = [
            {"name": "ids", "type": {"type": "array", "items": {"type": "string", "logicalType": "uuid"}}},
            {"name": "day", "type": {"type": "string", "logicalType": "date"}},
            {"name": "raw", "type": {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}},
        ]
        schema = {"type": "record", "name": "Order", "fields": fields}
        store = StoreRequest(name="s", store_type="key-value", value=f"avro:{json.dumps(schema)}")
        uuid, raw = "0f6ec9c1-46a2-4d34-9b1a-4d9c7e0c2d11", bytes(range(16))
        stream = io.BytesIO()
        schemaless_writer(stream, parse_schema(schema), {"ids": [UUID(uuid)], "day": "monday", "raw": raw})
        table = table_of([Entry(b"k", stream.getvalue(), AT_MS, 0)], 0, store)
        assert table["decoded_value"].to_pylist() == [{"ids": [uuid], "day": "monday", "raw": raw}]

    def test_a_window_size_that_is_declared_later_closes_earlier_windows_too(self) -> None:
        plain = StoreRequest(name="w", store_type="timestamped-window")
        sized = plain.model_copy(update={"window_size_ms": 1_000})
        key = b"k" + struct.pack(">qi", 5_000, 0)
        base = decoded(table_of([Entry(key, b"v", AT_MS, 0)], 0, plain), sized)
        (row,) = state_after(base, Tail(self.RULE), 0, sized).to_pylist()
        assert row["window_end"].timestamp() * 1000 == 6_000

    def test_bytes_that_do_not_fit_name_their_place(self) -> None:
        with pytest.raises(UnsafeState, match=r"store totals, partition 3, offset 4.*long can't read: 1 bytes"):
            table_of([Entry(b"a", b"x", AT_MS, 4)], 3, STORE)

    @pytest.mark.parametrize(
        ("store_type", "size_ms", "key", "bounds"),
        [
            ("timestamped-window", None, b"k" + struct.pack(">qi", 5_000, 0), (5_000, None)),
            ("timestamped-window", 1_000, b"k" + struct.pack(">qi", 5_000, 0), (5_000, 6_000)),
            ("session", None, b"k" + struct.pack(">qq", 9_000, 5_000), (5_000, 9_000)),
            ("suppress-window", None, b"k" + struct.pack(">q", 5_000), (5_000, None)),
            ("timestamped-key-value", None, b"k", (None, None)),
        ],
    )
    def test_windows_have_their_bounds_and_their_key(
        self, store_type: str, size_ms: int | None, key: bytes, bounds: tuple[int | None, int | None]
    ) -> None:
        store = StoreRequest(name="w", store_type=store_type, key="string", window_size_ms=size_ms)
        row = table_of([Entry(key, b"v", AT_MS, 0)], 0, store).to_pylist()[0]
        found = tuple(
            t if t is None else round(t.timestamp() * 1000) for t in (row["window_start"], row["window_end"])
        )
        assert (row["decoded_key"], found) == ("k", bounds)


class TestBase:
    @staticmethod
    def day(number: int, end: int) -> Manifest:
        return manifest_of(DAY.minus(number), PartitionSnapshot(partition=0, position=end, end=end, rows=0))

    def test_any_earlier_day_will_do_for_a_new_one(self) -> None:
        assert base_for(self.day(1, 50), None)

    def test_a_day_is_not_built_again_from_one_that_has_looked_further(self) -> None:
        assert base_for(self.day(1, 50), self.day(0, 50))
        assert not base_for(self.day(1, 51), self.day(0, 50))

    def test_offsets_of_another_topic_or_grace_mean_something_else(self) -> None:
        manifest = self.day(0, 1)
        rule = SnapshotRule(0)
        assert manifest.describes(manifest.topic, "x", STORE, rule)
        assert not manifest.describes(manifest.topic, "made anew", STORE, rule)
        assert not manifest.describes("orders-app-g3-totals-changelog", "x", STORE, rule)
        assert not manifest.describes(manifest.topic, "x", STORE, SnapshotRule(0, grace_ms=1))

    @pytest.mark.parametrize("name", ["kept_ms", "versions_ms"])
    @pytest.mark.parametrize(
        ("then", "now", "has_all"),
        [(None, None, True), (10, 10, True), (10, 5, True), (None, 5, True), (5, 10, False), (5, None, False)],
    )
    def test_a_day_with_less_history_than_is_wanted_now_is_no_base(
        self, name: str, then: int | None, now: int | None, has_all: bool
    ) -> None:
        manifest = self.day(0, 1).model_copy(update={name: then, "keeps_deletions": name == "versions_ms"})
        rule = replace(SnapshotRule(0), **{name: now})
        assert manifest.describes(manifest.topic, "x", STORE, rule) is has_all

    def test_a_day_of_a_versioned_store_by_the_earlier_rule_is_no_base(self) -> None:
        """It may lack a deletion, or have a version that had come back, and each later day would have the same."""
        rule = SnapshotRule(0, versions_ms=5)
        earlier = Manifest.model_validate_json(
            self.day(0, 1).model_copy(update={"versions_ms": 5}).model_dump_json()
        )
        assert not earlier.describes(earlier.topic, "x", STORE, rule)
        now = earlier.model_copy(update={"keeps_deletions": True})
        assert now.describes(now.topic, "x", STORE, rule)
        assert Manifest.model_validate_json(now.model_dump_json()) == now

    def test_other_days_are_written_as_before(self) -> None:
        assert "keeps_deletions" not in self.day(0, 1).model_dump(mode="json")


class TestDay:
    def test_the_day_is_the_one_that_the_interval_covers(self) -> None:
        assert SnapshotDay.of_interval("2026-01-05T00:00:00+00:00", "2026-01-06T00:00:00+00:00") == DAY
        assert SnapshotDay.of_interval("2026-01-05T02:00:00+02:00", "2026-01-06T00:00:00+00:00") == DAY

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            ("2026-01-05T00:00:00+00:00", "2026-01-05T00:00:00+00:00"),
            ("2026-01-05T01:00:00+00:00", "2026-01-06T01:00:00+00:00"),
            ("2026-01-05T00:00:00", "2026-01-06T00:00:00"),
            ("None", "None"),
        ],
    )
    def test_what_is_no_whole_day_is_refused(self, start: str, end: str) -> None:
        with pytest.raises(InvalidInput, match="a whole day from midnight to midnight, UTC"):
            SnapshotDay.of_interval(start, end)

    def test_the_first_day_that_ends_from_a_moment_on(self) -> None:
        assert SnapshotDay.first_ending_from(DAY.end_ms) == DAY
        assert SnapshotDay.first_ending_from(DAY.end_ms + 1) == replace(DAY, date=DAY.minus(-1).date)
        assert SnapshotDay.first_ending_from(DAY.end_ms - 1) == DAY
