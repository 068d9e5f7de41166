"""Which bytes of a changelog key decide the partition, per store type.

The partition of a changelog record is its task's, never the hash of the changelog key: a window store appends
12 bytes to the key, a session store 16. Sources: ``WindowKeySchema``, ``SessionKeySchema``,
``ChangeLoggingTimestampedKeyValueBytesStore`` of Kafka Streams 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.errors import InvalidInput, UnsafeState


@dataclass(frozen=True)
class ChangelogFormat:
    """How a store type writes its changelog.

    :param store_type: the name used in application files.
    :param suffix_bytes: bytes after the partitioning key (window start, sequence number, session bounds).
    :param cleanup_policies: what ``cleanup.policy`` of the changelog may be, each as a sorted tuple.
    """

    store_type: str
    suffix_bytes: int
    cleanup_policies: tuple[tuple[str, ...], ...]

    def partitioning_key(self, changelog_key: bytes) -> bytes:
        """Return the bytes that the partitioner sees.

        :raises UnsafeState: the key is too short for this store type.
        """
        if not self.suffix_bytes:
            return changelog_key
        if len(changelog_key) < self.suffix_bytes:
            raise UnsafeState(
                f"changelog key 0x{changelog_key.hex()}",
                found=f"{len(changelog_key)} bytes",
                expected=f"at least {self.suffix_bytes} bytes in a {self.store_type} changelog",
                remedy="The store is of another type; declare its real type in the application file.",
            )
        return changelog_key[: -self.suffix_bytes]


_COMPACT = (("compact",),)
_WINDOWED = (("compact", "delete"), ("compact",))

FORMATS: dict[str, ChangelogFormat] = {
    f.store_type: f
    for f in (
        ChangelogFormat("key-value", 0, _COMPACT),
        ChangelogFormat("timestamped-key-value", 0, _COMPACT),
        ChangelogFormat("window", 12, _WINDOWED),
        ChangelogFormat("timestamped-window", 12, _WINDOWED),
        ChangelogFormat("session", 16, _WINDOWED),
    )
}


def format_of(store_type: str) -> ChangelogFormat:
    """Return the format of a declared store type.

    :raises InvalidInput: the store type is unknown.
    """
    try:
        return FORMATS[store_type]
    except KeyError:
        raise InvalidInput(
            "store type",
            found=repr(store_type),
            expected=f"one of {', '.join(sorted(FORMATS))}",
            remedy="The DSL's aggregate/count/reduce without a window use timestamped-key-value.",
        ) from None
