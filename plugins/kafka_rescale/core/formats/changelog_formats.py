"""The changelog formats of the store types: which bytes of a key decide the partition, and further properties.

The partition of a changelog record is the partition of its task. The hash of the whole changelog key does not give
it: a window store appends 12 bytes to the key, a session store appends 16 bytes, and the key of a foreign-key
subscription begins with the foreign key. Sources:
``WindowKeySchema``, ``SessionKeySchema``, ``TimestampedKeyAndJoinSideSerializer``, ``CombinedKeySchema``,
``InMemoryTimeOrderedKeyValueChangeBuffer``, ``ChangeLoggingVersionedKeyValueBytesStore`` of Kafka Streams 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.formats.key_layouts import WHOLE, KeyLayout, LengthPrefixed, Trimmed, layout_named

PROCESSOR = "processor"
FOREIGN_KEY_SUBSCRIPTION = "foreign-key-subscription"


class Content(Enum):
    """Special properties of a format's values and history."""

    LATEST = "the last record of a key is all that counts"
    VERSIONS = "every record is a version of its key"
    BUFFERED = "values of a suppress buffer, whose format is in the header v"
    SUBSCRIPTIONS = "subscription wrappers, which name a partition of the left table"


@dataclass(frozen=True)
class ChangelogFormat:
    """The format in which a store type writes its changelog.

    :param store_type: the name in application files.
    :param layout: the place of the partitioning key in the changelog key.
    :param times: the places of times in the key. Each time has 8 bytes and is in ms since the epoch. A place below
        0 counts from the end of the key. The earlier time comes first in this tuple.
    :param cleanup_policies: the allowed values of the changelog's ``cleanup.policy``, each as a sorted tuple.
    """

    store_type: str
    layout: KeyLayout
    times: tuple[int, ...] = ()
    cleanup_policies: tuple[tuple[str, ...], ...] = (("compact",),)
    content: Content = Content.LATEST

    def partitioning_key(self, changelog_key: bytes) -> bytes:
        """Return the bytes that the partitioner gets.

        :raises UnsafeState: the key can't be of this store type.
        """
        return self.partitioning_keys([changelog_key])[0]

    def partitioning_keys(self, changelog_keys: Sequence[bytes]) -> list[bytes]:
        """Return the bytes that the partitioner gets for many keys, in the order of the keys.

        :raises UnsafeState: a key can't be of this store type.
        """
        extracted = [key for key in self.layout.extract(changelog_keys) if key is not None]
        if len(extracted) == len(changelog_keys):
            return extracted
        malformed = next(key for key in changelog_keys if self.layout.extract([key])[0] is None)
        raise UnsafeState(
            f"changelog key 0x{malformed.hex()}",
            found=f"{len(malformed)} bytes",
            expected=f"{self.layout.expected} in a {self.store_type} changelog",
            remedy="The store is of another type; declare its real type in the application file.",
        )

    @property
    def expires(self) -> bool:
        """Whether a store of this type may delete its entries by age, as its changelog does then."""
        return any("delete" in policy for policy in self.cleanup_policies)

    def has(self, content: Content) -> bool:
        """Whether the format has this property."""
        return self.content is content


_WINDOWED = (("compact", "delete"), ("compact",))
_WINDOW = Trimmed(suffix=12)
_SESSION = Trimmed(suffix=16)

FORMATS: dict[str, ChangelogFormat] = {
    f.store_type: f
    for f in (
        ChangelogFormat("key-value", WHOLE),
        ChangelogFormat("timestamped-key-value", WHOLE),
        ChangelogFormat("versioned", WHOLE, content=Content.VERSIONS),
        ChangelogFormat("window", _WINDOW, (-12,), _WINDOWED),
        ChangelogFormat("timestamped-window", _WINDOW, (-12,), _WINDOWED),
        ChangelogFormat("join-window", _WINDOW, (-12,), (("delete",), *_WINDOWED)),
        ChangelogFormat("session", _SESSION, (-8, -16), _WINDOWED),
        ChangelogFormat("outer-join", Trimmed(prefix=9), (0,)),
        ChangelogFormat(FOREIGN_KEY_SUBSCRIPTION, LengthPrefixed(), content=Content.SUBSCRIPTIONS),
        ChangelogFormat("suppress", WHOLE, content=Content.BUFFERED),
        ChangelogFormat("suppress-window", Trimmed(suffix=8), (-8,), content=Content.BUFFERED),
        ChangelogFormat("suppress-session", _SESSION, (-8, -16), content=Content.BUFFERED),
        ChangelogFormat(PROCESSOR, WHOLE, (), _WINDOWED),
    )
}

SEGMENTED = frozenset({"window", "timestamped-window", "join-window", "session"})
"""Store types that Kafka Streams keeps on disk in segments. A segment has the entries of a span of time."""

REFUSED: dict[str, tuple[str, str]] = {
    "stream-table-join-buffer": (
        "the buffer of a stream-table join with a grace period: Kafka Streams logs its keys with the time first "
        "and restores them as if it came last, so that no copy of its changelog can be restored",
        "Stop the inputs until the grace period has passed and the buffer is empty, then rescale a program "
        "without `Joined#withGracePeriod`.",
    ),
    "global": (
        "a global store, which every instance reads from its source topic",
        "Delete it from `stores:`; nothing has to be moved.",
    ),
    "source-table": (
        "a table whose input topic serves as its changelog (topology.optimization)",
        "Declare its real type and `changelog: source`, with `policy: fixed` for that input; or run without the "
        "optimisation first, so that the table has a changelog of its own.",
    ),
}
"""By store type that can't be moved: the reason, and the remedy."""


NOT_IN_PLACE: dict[str, str] = {
    "versioned": "whose deletions are versions of their keys: a tombstone does not clean it",
    "join-window": "whose changelog is only expired by age: a tombstone does not clean it",
    "outer-join": "which belongs to join windows, whose changelogs are only expired by age",
    FOREIGN_KEY_SUBSCRIPTION: "whose values name partitions of the old count, also those of the keys that stay",
}
"""By store type that can be copied to another topic, but not re-partitioned within its topic: the reason."""


def format_of(store_type: str, partitioning_key: str = "") -> ChangelogFormat:
    """Return the format of a declared store type.

    :param partitioning_key: for a Processor-API store, the declared place of the partitioning key in its keys.
    :raises InvalidInput: the store type is unknown or can't be moved, or the extractor can't be used.
    """
    if store_type in REFUSED:
        reason, remedy = REFUSED[store_type]
        raise InvalidInput(
            "store type", found=reason, expected="a store whose changelog can be moved", remedy=remedy
        )
    if store_type not in FORMATS:
        raise InvalidInput(
            "store type",
            found=repr(store_type),
            expected=f"one of {', '.join(sorted(FORMATS))}",
            remedy="The DSL's aggregate/count/reduce without a window use timestamped-key-value.",
        )
    if store_type == PROCESSOR:
        return replace(FORMATS[PROCESSOR], layout=layout_named(partitioning_key))
    return FORMATS[store_type]
