"""The state of a store, as its changelog has it. Tests compare it between two runs with equal input.

It leaves out what differs from run to run:

* sequence numbers of duplicates,
* the partition that a subscription names, which is checked instead,
* the instruction of a subscription, which depends on what a cache has held back,
* offsets in buffered values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations

from kafka_rescale.core.formats.subscription_wrapper import parse
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.integration.copy_helpers import Record, java_murmur2, per_key, read

Contents = dict[object, object]


def contents(
    connection: KafkaConnection, topic: str, store_type: str, left_partitions: int, *, timestamps: bool = True
) -> Contents:
    """Return the state of a store by key. It fails if a key is in two partitions and buried in neither of them.

    :param left_partitions: partitions of the left table, if the store has foreign-key subscriptions.
    :param timestamps: compare a table's timestamps. Those of a join depend on which side came last.
    """
    histories = per_key(without_buried(read(connection, topic)))
    if store_type == "versioned":
        return {key: [(r.value, r.timestamp) for r in records] for key, records in histories.items()}
    live = {key: records[-1] for key, records in histories.items() if key and records[-1].value is not None}
    match store_type:
        case "join-window":
            return dict(Counter((key[:-4], r.value, r.timestamp) for key, r in live.items()))
        case "foreign-key-subscription":
            return {key: _subscription(r, left_partitions) for key, r in live.items()}
        case "suppress" | "suppress-window" | "suppress-session":
            return {key: r.headers for key, r in live.items()}
        case "session":
            return {key: r.value for key, r in live.items()}
    return {key: (r.value, r.timestamp if timestamps else None, r.headers) for key, r in live.items()}


def without_buried(log: Mapping[int, list[Record]]) -> dict[int, list[Record]]:
    """Leave out what a growth in place leaves where a key has moved away: a history that ends with a tombstone.

    If a key is deleted in all its partitions, its history in the last of them is kept.
    """
    last = {partition: {r.key: r for r in records} for partition, records in log.items()}
    places = Counter(key for keys in last.values() for key in keys)
    kept: dict[int, list[Record]] = {}
    for partition in sorted(log):
        buried = {key for key, r in last[partition].items() if r.value is None and places[key] > 1}
        places.subtract(buried)
        kept[partition] = [r for r in log[partition] if r.key not in buried]
    return kept


def _subscription(record: Record, left_partitions: int) -> bytes:
    found = parse(record.value or b"")
    assert found is not None
    home = (java_murmur2(found.primary_key) & 0x7FFFFFFF) % left_partitions
    assert found.primary_partition == home, f"{found} is at home in {home} of {left_partitions}"
    value = record.value or b""
    return value[:1] + value[2:-4]


def output(connection: KafkaConnection, topic: str, *, latest: bool) -> Contents:
    """Return the output by key: all its values without their order, or only the last value."""
    found: dict[object, list[bytes | None]] = {}
    for records in read(connection, topic).values():
        for record in records:
            found.setdefault(record.key, []).append(record.value)
    return {key: values[-1] if latest else sorted(values, key=repr) for key, values in found.items()}


def settled(results: Mapping[object, list[bytes]]) -> Contents:
    """Leave out results in which an outer join says that a record has no partner, if another result has one.

    ``KStreamKStreamJoin`` says so at once of a record whose window has passed in the stream time of its task, even
    within the grace period. Whether that happens depends on the order in which the task reads its partitions.
    """
    kept: Contents = {}
    for key, values in results.items():
        pairs = [value.split(b"+") for value in values]
        joined = {side for pair in pairs if b"null" not in pair for side in pair}
        early = [b"null" in pair and bool(joined & {*pair}) for pair in pairs]
        kept[key] = [value for value, is_early in zip(values, early, strict=True) if not is_early]
    return kept


def differences(expected: Contents, found: Contents, most: int = 5) -> Sequence[str]:
    """Return the first differences, one line each."""
    keys = sorted(expected.keys() | found.keys(), key=repr)
    wrong = [key for key in keys if expected.get(key) != found.get(key)]
    return [_difference(key, expected.get(key), found.get(key)) for key in wrong[:most]]


def _difference(key: object, expected: object, found: object) -> str:
    if isinstance(expected, list) and isinstance(found, list):
        missing, surplus = (list((a - b).elements()) for a, b in permutations((Counter(expected), Counter(found))))
        return f"{key!r}: missing {missing}, surplus {surplus}"
    return f"{key!r}: expected {expected}, found {found}"
