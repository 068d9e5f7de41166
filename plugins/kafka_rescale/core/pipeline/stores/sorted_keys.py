"""A sorted set of byte strings. It grows and shrinks key by key, and a store reads ranges from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

BLOCK = 1_000
"""Keys in a new block. A block of twice this size is divided, so an insertion moves the keys of one block only."""


class SortedKeys:
    """Keys in the order of their bytes.

    :param keys: the first keys, in any order.
    """

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(set(keys))
        self._blocks = [ordered[at : at + BLOCK] for at in range(0, len(ordered), BLOCK)]
        self._lasts = [block[-1] for block in self._blocks]

    def add(self, key: bytes) -> None:
        """Add a key, unless it is there already."""
        if not self._blocks:
            self._blocks, self._lasts = [[key]], [key]
            return
        number = min(bisect_left(self._lasts, key), len(self._blocks) - 1)
        block = self._blocks[number]
        at = bisect_left(block, key)
        if at < len(block) and block[at] == key:
            return
        block.insert(at, key)
        self._lasts[number] = block[-1]
        if len(block) >= 2 * BLOCK:
            self._blocks[number : number + 1] = [block[:BLOCK], block[BLOCK:]]
            self._lasts[number : number + 1] = [block[BLOCK - 1], block[-1]]

    def discard(self, key: bytes) -> None:
        """Remove a key, if it is there."""
        number = bisect_left(self._lasts, key)
        if number == len(self._blocks):
            return
        block = self._blocks[number]
        at = bisect_left(block, key)
        if block[at] != key:
            return
        del block[at]
        if block:
            self._lasts[number] = block[-1]
        else:
            del self._blocks[number], self._lasts[number]

    def range(self, first: bytes, last: bytes) -> list[bytes]:
        """Return the keys from the first to the last, both inclusive."""
        found: list[bytes] = []
        for number in range(bisect_left(self._lasts, first), len(self._blocks)):
            block = self._blocks[number]
            if block[0] > last:
                break
            found += block[bisect_left(block, first) : bisect_right(block, last)]
        return found
