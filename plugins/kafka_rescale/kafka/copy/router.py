"""The target partition of a record, and the parts of it that are kept."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS, ChangelogFormat, format_of
from kafka_rescale.core.formats.subscription_wrapper import rewritten
from kafka_rescale.core.partitioning.partitioners import (
    NO_STATE_OF_EMPTY_KEYS,
    earlier_homes,
    is_spread,
    partitioner_named,
)
from kafka_rescale.core.plan.plan import Move, MoveKind

Headers = list[tuple[str, bytes | None]]

NOWHERE = -1
"""Takes the place of a target partition if the record is not to be written."""

_WHOLE_KEY = FORMATS["key-value"]
_CONSISTENCY_VECTOR = ("v", b"\x00")
_POSITION = "c"


class Router:
    """Computes target partitions, and checks that every key sits where the declared partitioner puts it.

    :param earlier: further counts that may have placed keys, beside those of the move.
    """

    def __init__(self, move: Move, earlier: Sequence[int] = ()) -> None:
        self._move = move
        self._earlier = (move.earlier_partitions, *earlier)
        self._is_changelog = move.kind is MoveKind.CHANGELOG
        self._format: ChangelogFormat = (
            format_of(move.store_type, move.partitioning_key) if self._is_changelog else _WHOLE_KEY
        )
        self._partitioner = partitioner_named(move.partitioner, move.key_topic)
        self._keyless = 0

    def targets(self, keys: Sequence[bytes | None], partition: int) -> list[int]:
        """Return the target partition of every key, in their order, or ``NOWHERE``.

        In place, a changelog record that stays is not written, and every record in flight is written again.
        Records that an earlier growth in place has left behind are not written: their keys' state lives elsewhere.

        Records of a repartition topic may lack a key; those of one source partition stay together. Records of an
        input without a key are dealt out over all partitions, as their producers do. So are empty keys that
        librdkafka has spread.

        :param partition: source partition that all these keys were read from.
        :raises UnsafeState: a key does not belong there; copying it could break the order of its records.
        """
        count = self._move.target_partitions
        keys = self._without_spread(keys, partition)
        keyed = [key for key in keys if key is not None]
        if len(keyed) == len(keys):
            return self._moving(self._hashed(keyed, partition), partition)
        if self._is_changelog:
            raise self._unsafe(partition, "a record without a key", "a key in every record of a changelog")
        hashed = iter(self._hashed(keyed, partition))
        if self._move.kind is MoveKind.INPUT:
            return [self._dealt(partition) if key is None else next(hashed) for key in keys]
        return [partition % count if key is None else next(hashed) for key in keys]

    def _without_spread(self, keys: Sequence[bytes | None], partition: int) -> Sequence[bytes | None]:
        """Return the keys of an input, with None in place of those that producers have put into any partition.

        Empty keys in their own partition stay: a producer with ``consistent`` keeps them together and in order.
        """
        if self._move.kind is not MoveKind.INPUT or not is_spread(self._partitioner, b""):
            return keys
        is_home = self._partitioner.partition(b"", self._move.source_partitions) == partition
        return keys if is_home else [key or None for key in keys]

    def _moving(self, targets: list[int], partition: int) -> list[int]:
        if not (self._move.is_in_place and self._is_changelog):
            return targets
        return [NOWHERE if target == partition else target for target in targets]

    def _dealt(self, partition: int) -> int:
        self._keyless += 1
        return (partition + self._keyless) % self._move.target_partitions

    def values(self, values: Sequence[bytes | None], partition: int) -> Sequence[bytes | None]:
        """Return the values in the form that green needs; only foreign-key subscriptions change.

        :param partition: source partition, for errors.
        :raises UnsafeState: a subscription can't be rewritten.
        """
        if self._move.left is None:
            return values
        return rewritten(values, self._move.left, where=f"topic {self._move.source} partition {partition}")

    def _hashed(self, keys: Sequence[bytes], partition: int) -> list[int]:
        if not keys:
            return []
        inner = self._inner(keys, partition)
        homes = self._partitioner.partition_batch(inner, self._move.source_partitions)
        left_behind: set[int] = set()
        if homes.count(partition) != len(homes):
            strays = [i for i, home in enumerate(homes) if home != partition]
            left_behind = self._at_home(inner, strays, partition, self._move.grown_from)
            carried = self._at_home(inner, strays, partition, self._earlier)
            for at in (i for i in strays if i not in left_behind | carried):
                is_state_of_spread = self._is_changelog and is_spread(self._partitioner, inner[at])
                raise self._unsafe(
                    partition,
                    f"key 0x{keys[at].hex()}, which {self._partitioner.name} puts into partition {homes[at]}",
                    "keys of this partition only",
                    NO_STATE_OF_EMPTY_KEYS if is_state_of_spread else "",
                )
        targets = self._partitioner.partition_batch(inner, self._move.target_partitions)
        if self._partitioner.is_static and targets != homes:
            at = next(i for i, target in enumerate(targets) if target != homes[i])
            raise self._unsafe(
                partition,
                f"key 0x{keys[at].hex()}, which {self._partitioner.name} would move to partition {targets[at]}",
                "a static partitioner, with which every key stays where it is",
            )
        return [NOWHERE if i in left_behind else t for i, t in enumerate(targets)] if left_behind else targets

    def _inner(self, keys: Sequence[bytes], partition: int) -> list[bytes]:
        try:
            return self._format.partitioning_keys(keys)
        except UnsafeState as error:
            where = f"topic {self._move.source} partition {partition}, {error.what}"
            raise UnsafeState.of(error.complaint.about(where)) from error

    def _at_home(
        self, inner: Sequence[bytes], strays: Sequence[int], partition: int, counts: Sequence[int]
    ) -> set[int]:
        """Return the strays that one of the earlier counts has placed here. A count of 0 stands for no count."""
        keys = [inner[i] for i in strays]
        return {
            i
            for count in counts
            if count
            for i, home in zip(strays, earlier_homes(self._partitioner, keys, count), strict=True)
            if home == partition
        }

    def _unsafe(self, partition: int, found: str, expected: str, remedy: str = "") -> UnsafeState:
        new = self._move.target
        remedy = remedy or (
            f"Its producer places keys by another partitioner or count: let it write to {new}. Only you can put "
            f"in order what it has left here. {by_hand(self._move)}"
            if self._move.kind is MoveKind.INPUT
            else "Declare the partitioner and the store type that the application really uses; "
            "a topic whose count was changed before can't be copied."
        )
        where = f"topic {self._move.source} partition {partition}"
        return UnsafeState(where, found=found, expected=expected, remedy=remedy)


def by_hand(move: Move) -> str:
    """Return how a person gets a bridge past a record that it can't copy.

    The records before it, up to the last commit, were in the transaction that was aborted.
    """
    return (
        f"Write the records from the committed offset of the bridge's group up to this one to {move.target} "
        "yourself, commit the offset behind it to that group (`kafka-consumer-groups.sh --reset-offsets`), and "
        "run the bridge again."
    )


def to_bury(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[int]:
    """Return the records that move away in place and whose keys need a tombstone in the old partition.

    One tombstone per key and batch is enough. If the key's last record is a tombstone itself, none is needed, as
    that record also lies in the old partition.
    """
    last = {key: i for i, key in enumerate(keys)}
    return [i for i in last.values() if values[i] is not None]


def kept_headers(headers: Headers | None) -> Headers | None:
    """Return the headers of a changelog record, without headers about blue's partitions.

    With consistency tracking Kafka Streams appends ``v`` = 0x00 and right behind it ``c``, a vector of input
    offsets (``ProcessorContextImpl#addVectorClockToHeaders``). Only such pairs are dropped: stores in the header
    format (KIP-1271) keep the user's own headers, which may have the same names.
    """
    if not headers or _CONSISTENCY_VECTOR not in headers:
        return headers
    pairs = {
        i for i in range(len(headers) - 1) if headers[i] == _CONSISTENCY_VECTOR and headers[i + 1][0] == _POSITION
    }
    return [header for i, header in enumerate(headers) if i not in pairs and i - 1 not in pairs] or None
