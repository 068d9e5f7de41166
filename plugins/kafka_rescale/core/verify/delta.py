"""What the application has written since a proof, record by record: the oracles for a stretch of both logs.

A stretch of blue begins at a position of the copy. The stretch of green begins at ends below which green has
everything that blue has below this position (``Fences``). So each record within green's stretch is a copy of a
record within blue's stretch. Both are suffixes of a key's history, as in ``core.verify.oracles``, and are compared
from the end. Here a deletion has to be on both sides as well: the value that it deletes may lie before the
stretch, where this comparison does not look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

from kafka_rescale.core.verify.oracles import Alignment, Entry, Oracle

MALFORMED = -1
"""Takes the place of a home if the key can't be of the store type."""
CERTAIN = frozenset({Oracle.PLACEMENT, Oracle.ONE_PARTITION})
"""What no later record or deletion explains: it takes no record away from where no record of the key may be."""


class Seen(NamedTuple):
    """One record.

    :param home: the partition of green that its key belongs to, or ``MALFORMED``.
    :param value: a digest of 16 bytes; for blue, of the value as green needs it. None for a deletion.
    :param headers: a digest of the headers that green needs; empty without headers.
    """

    key: bytes
    partition: int
    home: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    headers: bytes

    @property
    def content(self) -> tuple[object, ...]:
        """What has to be the same on both sides."""
        return self.timestamp_ms, self.value, self.headers


@dataclass(frozen=True)
class DeltaRules:
    """What must hold for a stretch.

    :param since: an offset by partition of blue: records at or behind it have to be in green's stretch.
    :param until: an offset by partition of blue: a key with a record at or behind it is left to the next stretch.
        None if blue was stopped: then nothing comes behind the stretch.
    :param complete: partitions of blue from whose stretch no record has been removed.
    :param versions_since_ms: see ``StorePair``.
    :param expires_before_ms: see ``StorePair``.
    :param trimmed_blue: whether retention has deleted records of blue's stretch.
    :param trimmed_green: whether retention has deleted records of green's stretch.
    :param modulus: the partition of a record in green, modulo this number, is its partition in blue; 0 if the
        partitions need not be related.
    """

    since: Mapping[int, int]
    until: Mapping[int, int] | None = None
    complete: frozenset[int] = frozenset()
    versions_since_ms: int | None = None
    expires_before_ms: int | None = None
    trimmed_blue: bool = False
    trimmed_green: bool = False
    modulus: int = 0


@dataclass
class Judged:
    """The result for a stretch of one store.

    :param rows: violations, each with the records side by side.
    :param places: for each key with a violation, where all its records lie; without those that ``without`` left
        out.
    :param touched: number of keys that are left to the next stretch.
    """

    rows: list[tuple[Oracle, Alignment]] = field(default_factory=list)
    places: dict[bytes, frozenset[tuple[bool, int, int]]] = field(default_factory=dict)
    touched: int = 0
    blue_records: int = 0
    green_records: int = 0
    live: int = 0
    deleted: int = 0

    @classmethod
    def sum(cls, parts: Iterable[Judged]) -> Judged:
        """Return the results for parts of the keys as one result."""
        all_parts = list(parts)
        return cls(
            rows=[row for part in all_parts for row in part.rows],
            places={key: at for part in all_parts for key, at in part.places.items()},
            touched=sum(part.touched for part in all_parts),
            blue_records=sum(part.blue_records for part in all_parts),
            green_records=sum(part.green_records for part in all_parts),
            live=sum(part.live for part in all_parts),
            deleted=sum(part.deleted for part in all_parts),
        )

    def without(self, keys: Iterable[bytes]) -> Judged:
        """Return the result without the violations that later records of some keys may explain."""
        gone = set(keys)
        rows = [(oracle, at) for oracle, at in self.rows if at.key not in gone or oracle in CERTAIN]
        places = {key: at for key, at in self.places.items() if key not in gone}
        return replace(self, rows=rows, places=places)

    def read_again(self, again: Judged) -> Judged:
        """Return the result after another reading of the keys in ``places``; the newer reading of them counts."""
        rows = [(oracle, at) for oracle, at in self.rows if at.key not in self.places]
        return replace(self, rows=rows + again.rows, places=again.places)


def judge(blue: Iterable[Seen], green: Iterable[Seen], rules: DeltaRules) -> Judged:
    """Compare two stretches of one store.

    :param blue: blue's records, each partition in the order of its offsets.
    :param green: green's records in the same way.
    """
    found = Judged()
    histories: dict[bytes, tuple[list[Seen], list[Seen]]] = defaultdict(lambda: ([], []))
    for record in blue:
        histories[record.key][0].append(record)
        found.blue_records += 1
    for record in green:
        histories[record.key][1].append(record)
        found.green_records += 1
    for key, sides in histories.items():
        is_touched = rules.until is not None and any(r.offset >= rules.until[r.partition] for r in sides[0])
        newest_first = [sorted(side, key=lambda r: (-r.offset, r.partition)) for side in sides]
        _judge_key(found, key, newest_first[0], newest_first[1], is_touched, rules)
    return found


def _judge_key(
    found: Judged, key: bytes, blue: list[Seen], green: list[Seen], is_touched: bool, rules: DeltaRules
) -> None:
    if is_touched:
        found.touched += 1
    elif green:
        found.live += green[0].value is not None
        found.deleted += green[0].value is None
    rows: list[tuple[Oracle, Alignment]] = []
    newer: tuple[Seen | None, Seen | None] = (None, None)
    for rank, (b, g) in enumerate(zip_longest(blue, green), 1):
        oracles = [*_placed(b, g, newer)]
        if not is_touched:
            oracles += _compared(rank, b, g, rules)
        rows += [(oracle, _aligned(key, rank, b, g, newer)) for oracle in oracles]
        newer = b or newer[0], g or newer[1]
    if rows:
        found.rows += rows
        found.places[key] = frozenset(
            (is_green, r.partition, r.offset) for is_green, side in ((False, blue), (True, green)) for r in side
        )


def _placed(b: Seen | None, g: Seen | None, newer: tuple[Seen | None, Seen | None]) -> Iterator[Oracle]:
    if g is not None and g.partition != g.home:
        yield Oracle.PLACEMENT
    if any(
        mine is not None and next_one is not None and mine.partition != next_one.partition
        for mine, next_one in ((b, newer[0]), (g, newer[1]))
    ):
        yield Oracle.ONE_PARTITION


def _compared(rank: int, b: Seen | None, g: Seen | None, rules: DeltaRules) -> Iterator[Oracle]:
    if b is not None and g is not None:
        if b.content != g.content:
            yield _difference(b, g) if rank == 1 else Oracle.SEQUENCE
        if rules.modulus and g.partition % rules.modulus != b.partition:
            yield Oracle.RESIDUE
    elif b is not None:
        yield from _missing(rank, b, rules)
    elif g is not None:
        yield from _unknown(rank, g, rules)


def _difference(b: Seen, g: Seen) -> Oracle:
    if b.value is not None:
        return Oracle.STATE
    return Oracle.TOMBSTONES if g.value is not None else Oracle.SEQUENCE


def _missing(rank: int, b: Seen, rules: DeltaRules) -> Iterator[Oracle]:
    """Judge a record of blue without a partner. Records before ``since`` have been compared already."""
    if b.offset < rules.since[b.partition] or _is_expired(b, rules, is_trimmed=rules.trimmed_green):
        return
    if rank == 1:
        yield Oracle.STATE if b.value is not None else Oracle.TOMBSTONES
    elif _is_kept(b, rules):
        yield Oracle.VERSIONS


def _unknown(rank: int, g: Seen, rules: DeltaRules) -> Iterator[Oracle]:
    """Judge a record of green without a partner."""
    if _is_expired(g, rules, is_trimmed=rules.trimmed_blue):
        return
    if rank == 1:
        yield Oracle.TOMBSTONES if g.value is not None else Oracle.STATE
    elif rules.complete >= set(rules.since):
        yield Oracle.DUPLICATES
    elif _is_kept(g, rules):
        yield Oracle.VERSIONS


def _is_expired(record: Seen, rules: DeltaRules, *, is_trimmed: bool) -> bool:
    before = rules.expires_before_ms
    return is_trimmed and before is not None and record.timestamp_ms < before


def _is_kept(record: Seen, rules: DeltaRules) -> bool:
    since = rules.versions_since_ms
    return since is not None and record.timestamp_ms >= since


def _aligned(
    key: bytes, rank: int, b: Seen | None, g: Seen | None, newer: tuple[Seen | None, Seen | None]
) -> Alignment:
    one = b or g
    assert one is not None
    return Alignment(
        key=key,
        rank=rank,
        source=b.partition if b else 0,
        target=one.home,
        blue=_entry(b),
        green=_entry(g),
        blue_neighbour=newer[0].partition if newer[0] else None,
        green_neighbour=newer[1].partition if newer[1] else None,
    )


def _entry(record: Seen | None) -> Entry | None:
    if record is None:
        return None
    digest = record.value or bytes(16)
    return Entry(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        tombstone=record.value is None,
        value=(int.from_bytes(digest[:8]), int.from_bytes(digest[8:])),
        headers=int.from_bytes(record.headers),
    )
