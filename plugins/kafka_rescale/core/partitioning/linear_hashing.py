"""Linear hashing over an initial partition count, as KIP-253 and KIP-287 propose it.

One partition is split at a time: growing from ``n`` to ``n + 1`` moves keys of a single partition, and only to the
new one. Partitions that are not split keep every key, so that their state stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.murmur2 import murmur2, murmur2_batch


def doubled(initial: int, n: int) -> int:
    """Return the largest ``initial * 2 ** k`` that is not above ``n``: the count when the present round began."""
    return initial << (n // initial).bit_length() - 1


def coarser(partition: int, n: int, initial: int) -> int:
    """Return the bucket, out of ``n``, that a partition belongs to.

    If ``n`` is an earlier partition count, this is where its keys were then. If ``n`` is the number of processors,
    of which there are at most as many as partitions, this is KIP-287's partition → processor mapping: growing the
    partitions leaves every key with its processor.

    :param initial: count at the very beginning, of partitions and of processors.
    """
    while partition >= n:
        partition -= doubled(initial, partition)
    return partition


def ancestors(partition: int, initial: int) -> tuple[int, ...]:
    """Return the partitions that keys of this one were in before it was split off, the latest first.

    :param initial: count at the very beginning.
    """
    found = []
    while partition >= initial:
        partition -= doubled(initial, partition)
        found.append(partition)
    return tuple(found)


class LinearHashing:
    """murmur2, addressed by linear hashing.

    :param initial: partition count that the topic was created with; it must never be forgotten.
    """

    is_modulo = False
    is_static = False

    def __init__(self, initial: int) -> None:
        self.name = f"linear-hashing:{initial}"
        self.fewest_partitions = initial

    def partition(self, key: bytes, n: int) -> int:
        """Return the partition in ``[0, n)`` of one key.

        :raises UnsafeState: there are fewer partitions than there were at the beginning.
        """
        whole = self._round(n)
        positive = murmur2(key) & 0x7FFFFFFF
        address = positive % whole
        return positive % (2 * whole) if address < n - whole else address

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order.

        :raises UnsafeState: there are fewer partitions than there were at the beginning.
        """
        whole = self._round(n)
        positive = murmur2_batch(keys) & np.uint32(0x7FFFFFFF)
        address = positive % np.uint32(whole)
        is_split = address < np.uint32(n - whole)
        partitions: list[int] = np.where(is_split, positive % np.uint32(2 * whole), address).tolist()
        return partitions

    def _round(self, n: int) -> int:
        if n < self.fewest_partitions:
            raise UnsafeState(
                f"partitioner {self.name}",
                found=f"{n} partitions",
                expected=f"at least the initial {self.fewest_partitions}",
                remedy="Declare the count that the topic was created with: below it linear hashing has no "
                "meaning.",
            )
        return doubled(self.fewest_partitions, n)
