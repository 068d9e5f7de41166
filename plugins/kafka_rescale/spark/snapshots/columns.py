"""The columns of a snapshot: the bytes of the records, and their values as the declared serdes decode them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from kafka_rescale.core.application.checks.snapshots import has_window_start
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.avro_schemas import schema_id
from kafka_rescale.core.formats.changelog_formats import ChangelogFormat, format_of
from kafka_rescale.core.formats.serdes import AVRO_CONFLUENT, JSON, LONG, NONE, STRING, Serde, serde_named
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule, retained
from kafka_rescale.core.snapshots.tail import Tail, survivors
from kafka_rescale.spark.snapshots.avro_types import arrow_type, arrow_value

_TIME = pa.timestamp("ms", tz="UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RAW = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("timestamp", _TIME),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("window_start", _TIME),
    ("window_end", _TIME),
    ("headers", _HEADERS),
)
DECODED_KEY, DECODED_VALUE = "decoded_key", "decoded_value"
_ORDER = [("key", "ascending"), ("timestamp", "ascending")]


def schema_of(store: StoreRequest) -> Any:
    """Return the Arrow schema of a store's snapshots; every declared serde adds a decoded column."""
    decoded = [(DECODED_KEY, store.key), (DECODED_VALUE, store.value)]
    return pa.schema([*RAW, *((name, column_type(serde)) for name, serde in decoded if serde != NONE)])


@cache
def column_type(serde: str) -> Any:
    """Return the Arrow type of the values that a serde decodes.

    :raises UnsafeState: no column can hold the values of the Avro schema.
    """
    named = serde_named(serde)
    if named.kind in {STRING, JSON}:
        return pa.string()
    if named.kind == LONG:
        return pa.int64()
    try:
        return arrow_type(named.parsed_schema)
    except ValueError as error:
        raise UnsafeState(
            "Avro schema",
            found=str(error),
            expected="a schema whose values fit into one column",
            remedy="Leave the serde out: the bytes are in the snapshot all the same.",
        ) from None


def table_of(entries: Iterable[Entry], partition: int, store: StoreRequest) -> Any:
    """Return records as rows of a store's schema.

    :raises UnsafeState: the declared serde can't decode some bytes.
    """
    rows = list(entries)
    columns: dict[str, Any] = {
        "key": [r.key for r in rows],
        "value": [r.value for r in rows],
        "timestamp": [r.timestamp_ms for r in rows],
        "partition": [partition] * len(rows),
        "offset": [r.offset for r in rows],
        "window_start": [None] * len(rows),
        "window_end": [None] * len(rows),
        "headers": [[{"key": k, "value": v} for k, v in r.headers] for r in rows],
    }
    arrays = {name: pa.array(columns[name], kind) for name, kind in RAW}
    return decoded(pa.table(arrays), store)


def decoded(table: Any, store: StoreRequest) -> Any:
    """Return a table whose decoded columns are made anew, as the present declaration says.

    :raises UnsafeState: the declared serde can't decode some bytes.
    """
    fmt = format_of(store.store_type, store.partitioning_key)
    raw = _with_bounds(table.select([name for name, _ in RAW]), fmt, store.window_size_ms)
    if store.key != NONE:
        inner = fmt.partitioning_keys(raw["key"].to_pylist())
        raw = raw.append_column(DECODED_KEY, _decoded_column(inner, store.key, raw, store.name))
    if store.value != NONE:
        values = raw["value"].to_pylist()
        raw = raw.append_column(DECODED_VALUE, _decoded_column(values, store.value, raw, store.name))
    return raw


def state_after(base: Any | None, tail: Tail, partition: int, store: StoreRequest) -> Any:
    """Return the rows of a partition's state, by key and timestamp.

    :param base: rows of an earlier state, of this store's schema; None for a tail from the beginning of the log.
    :raises UnsafeState: the declared serde can't decode some bytes, or several schemas have written the bytes
        while only one schema is declared.
    """
    rows = table_of(tail.latest.values(), partition, store)
    if base is not None:
        keep = survivors(base["key"].to_pylist(), _ms(base), tail)
        kept = base.filter(pa.array(keep, pa.bool_())).cast(schema_of(store))
        rows = pa.concat_tables([kept, rows])
    rows = rows.sort_by(_ORDER)
    rows = rows.filter(pa.array(_retained(rows, tail.rule), pa.bool_()))
    _assert_one_schema(rows, store)
    # Otherwise the bytes of the file would depend on its base day, because chunks and names within lists differ.
    return rows.cast(schema_of(store)).combine_chunks()


def _retained(rows: Any, rule: SnapshotRule) -> list[bool]:
    return retained(rows["key"].to_pylist(), _ms(rows), rows["value"].is_null().to_pylist(), rule)


def _ms(table: Any) -> list[int]:
    return list(table["timestamp"].cast(pa.int64()).to_pylist())


def _decoded_column(data: Sequence[bytes | None], serde: str, raw: Any, store: str) -> Any:
    named = serde_named(serde)
    values = [None if item is None else _decode(named, item, store, raw, i) for i, item in enumerate(data)]
    return pa.array(values, column_type(serde))


def _assert_one_schema(rows: Any, store: StoreRequest) -> None:
    """Refuse bytes of several schemas if only one is declared: they might be decoded, but wrongly."""
    fmt = format_of(store.store_type, store.partitioning_key)
    for column, declared in (("key", store.key), ("value", store.value)):
        serde = serde_named(declared)
        if serde.kind != AVRO_CONFLUENT or serde.registered_id is not None:
            continue
        data = rows[column].to_pylist()
        inner = fmt.partitioning_keys(data) if column == "key" else data
        ids = sorted({schema_id(item) for item in inner if item is not None})
        if len(ids) > 1:
            raise UnsafeState(
                f"store {store.name}",
                found=f"{column}s that were written by several schemas of the registry (ids {ids[:5]})",
                expected="bytes of one schema, because a single schema is declared",
                remedy="Declare each in `snapshots.stores`, the newest last: "
                "avro-confluent:<id>=<schema file>,<id>=<schema file>",
            )


def _decode(serde: Serde, item: bytes, store: str, raw: Any, index: int) -> Any:
    try:
        return arrow_value(serde.decode(item))
    except ValueError as error:
        raise UnsafeState(
            f"store {store}, partition {raw['partition'][index]}, offset {raw['offset'][index]}",
            found=f"bytes that {serde.kind} can't read: {error}"[:200],
            expected=f"what the serde {serde.kind} has written",
            remedy="Correct the serde in `snapshots.stores`, or leave it out to get the bytes only.",
        ) from None


def _with_bounds(raw: Any, fmt: ChangelogFormat, size_ms: int | None) -> Any:
    bounds = _bounds(raw["key"].to_pylist(), fmt, size_ms)
    for name, times in zip(("window_start", "window_end"), bounds, strict=True):
        raw = raw.set_column(raw.schema.get_field_index(name), name, pa.array(times, _TIME))
    return raw


def _bounds(
    keys: Sequence[bytes], fmt: ChangelogFormat, size_ms: int | None
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Return the begin and end of the windows in keys, as far as the keys have them."""
    if len(fmt.times) == 2:
        end_at, start_at = sorted(fmt.times)
        return [_time(k, start_at) for k in keys], [_time(k, end_at) for k in keys]
    if not has_window_start(fmt):
        return [None] * len(keys), [None] * len(keys)
    starts = [_time(k, fmt.times[0]) for k in keys]
    return starts, [None if size_ms is None else start + size_ms for start in starts]


def _time(key: bytes, at: int) -> int:
    begin = len(key) + at
    return int.from_bytes(key[begin : begin + 8], "big", signed=True)
