"""Linear hashing over an initial partition count, as KIP-253 and KIP-287 propose it.

Linear hashing splits one partition at a time. Growth from ``n`` to ``n + 1`` moves keys of a single partition, and
only to the new partition. All other partitions keep every key, and so their state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.murmur2 import murmur2, murmur2_batch


def doubled(initial: int, n: int) -> int:
    """Return the largest ``initial * 2 ** k`` that is not above ``n``.

    This is the count at which the present round began. A round splits every partition that was there at its begin.
    """
    return initial << (n // initial).bit_length() - 1


def coarser(partition: int, n: int, initial: int) -> int:
    """Return the bucket, out of ``n``, that a partition belongs to.

    If ``n`` is an earlier partition count, the bucket is the partition where the keys were then. If ``n`` is the
    number of processors, the bucket is the processor of the partition (KIP-287). There are at most as many
    processors as partitions. If the partitions grow, every key keeps its processor.

    :param initial: the count at the very beginning, of partitions and of processors.
    """
    while partition >= n:
        partition -= doubled(initial, partition)
    return partition


def ancestors(partition: int, initial: int) -> tuple[int, ...]:
    """Return the partitions where the keys of this partition were before it was split off, the latest one first.

    :param initial: the count at the very beginning.
    """
    found = []
    while partition >= initial:
        partition -= doubled(initial, partition)
        found.append(partition)
    return tuple(found)


class LinearHashing:
    """Linear hashing over the murmur2 hash of a key.

    :param initial: the partition count that the topic was created with. It must never be forgotten.
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
