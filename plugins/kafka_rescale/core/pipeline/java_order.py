"""The orders in which Java's collections return their elements. The text of a topology depends on these orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


def hash_order(names: Iterable[str]) -> list[str]:
    """Return strings in the order in which a ``HashMap`` or ``HashSet`` returns them.

    Entries of one bucket keep their order when the table grows. Java turns a bucket with more than eight entries
    into a tree, which may have another order. Names of nodes, topics and stores do not collide that often.

    :param names: the strings in the order in which they are added.
    """
    distinct = list(dict.fromkeys(names))
    capacity = 16
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2
    return sorted(distinct, key=lambda name: _spread_hash(name) & (capacity - 1))


def _spread_hash(name: str) -> int:
    code = 0
    units = name.encode("utf-16-be")
    for i in range(0, len(units), 2):
        code = (31 * code + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return code ^ (code >> 16)


class TreeOrder(Generic[T]):
    """A ``TreeSet`` whose elements may compare differently after they were added.

    Elements in the tree keep their places. The changed order decides only the places of elements that come later.

    :param compare: takes two elements; returns a number below 0 if the first one comes before the second one.
    """

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._root: _Entry[T] | None = None

    def add(self, value: T) -> None:
        """Add an element that isn't in the tree yet."""
        entry, parent, is_left = self._root, None, False
        while entry is not None:
            parent, is_left = entry, self._compare(value, entry.value) < 0
            entry = entry.left if is_left else entry.right
        added = _Entry(value, parent)
        if parent is None:
            self._root = added
        elif is_left:
            parent.left = added
        else:
            parent.right = added
        self._balance(added)

    def __iter__(self):  # type: ignore[no-untyped-def]
        stack: list[_Entry[T]] = []
        entry = self._root
        while stack or entry is not None:
            while entry is not None:
                stack.append(entry)
                entry = entry.left
            entry = stack.pop()
            yield entry.value
            entry = entry.right

    def _balance(self, entry: _Entry[T]) -> None:
        entry.red = True
        while entry.parent is not None and entry.parent.red:
            parent, grand = entry.parent, entry.parent.parent
            assert grand is not None  # The root is never red.
            parent_is_left = parent is grand.left
            uncle = grand.right if parent_is_left else grand.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grand.red = True
                entry = grand
                continue
            if entry is (parent.right if parent_is_left else parent.left):
                entry = parent
                self._rotate(entry, to_left=parent_is_left)
                parent = entry.parent  # type: ignore[assignment]
            parent.red, grand.red = False, True
            self._rotate(grand, to_left=not parent_is_left)
        assert self._root is not None
        self._root.red = False

    def _rotate(self, entry: _Entry[T], *, to_left: bool) -> None:
        child = entry.right if to_left else entry.left
        assert child is not None
        inner = child.left if to_left else child.right
        if to_left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        child.parent = entry.parent
        if entry.parent is None:
            self._root = child
        elif entry.parent.left is entry:
            entry.parent.left = child
        else:
            entry.parent.right = child
        entry.parent = child


class _Entry(Generic[T]):
    def __init__(self, value: T, parent: _Entry[T] | None) -> None:
        self.value, self.parent = value, parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.red = False
