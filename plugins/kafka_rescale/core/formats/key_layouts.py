"""The place of the partitioning key in a changelog key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput, UnsafeState

_LENGTH_BYTES = 4


class KeyLayout(Protocol):
    """Finds partitioning keys in changelog keys."""

    @property
    def expected(self) -> str:
        """The requirement on a key in words, for messages."""
        ...

    def extract(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the partitioning key of every changelog key. ``None`` if a key can't be of this layout."""
        ...


@dataclass(frozen=True)
class Trimmed:
    """A fixed number of bytes before and after the partitioning key.

    :param prefix: the number of bytes before the partitioning key.
    :param suffix: the number of bytes after it.
    """

    prefix: int = 0
    suffix: int = 0

    @property
    def expected(self) -> str:
        """The requirement on a key in words, for messages."""
        return f"at least {self.prefix + self.suffix} bytes"

    def extract(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return every key without its ends."""
        least = self.prefix + self.suffix
        if not least or not keys:
            return keys
        if min(map(len, keys)) >= least:
            cut = slice(self.prefix, -self.suffix or None)
            return [key[cut] for key in keys]
        return [key[self.prefix : len(key) - self.suffix] if len(key) >= least else None for key in keys]


WHOLE = Trimmed()


@dataclass(frozen=True)
class LengthPrefixed:
    """Four bytes with the length of the partitioning key, this key, and the rest (``CombinedKeySchema``)."""

    expected: str = "4 bytes of length, a foreign key of so many bytes, and a primary key"

    def extract(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the foreign key of every key. The foreign key is the partitioning key."""
        return [_prefixed(key) for key in keys]


def _prefixed(key: bytes) -> bytes | None:
    end = _LENGTH_BYTES + int.from_bytes(key[:_LENGTH_BYTES], "big")
    return key[_LENGTH_BYTES:end] if _LENGTH_BYTES <= end <= len(key) and len(key) >= _LENGTH_BYTES else None


@dataclass(frozen=True)
class First:
    """The partitioning key comes first and always has the same width.

    :param width: the number of its bytes.
    """

    width: int

    @property
    def expected(self) -> str:
        """The requirement on a key in words, for messages."""
        return f"at least {self.width} bytes"

    def extract(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the beginning of every key."""
        return [key[: self.width] if len(key) >= self.width else None for key in keys]


@dataclass(frozen=True)
class Called:
    """A function of the user finds the partitioning key: ``(changelog key) -> partitioning key``.

    The function returns ``None`` for a key in which it finds no partitioning key.

    :param function: ``module:name``.
    """

    function: str

    @property
    def expected(self) -> str:
        """The requirement on a key in words, for messages."""
        return f"a key in which {self.function} finds the partitioning key"

    def extract(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the function's answer for every key.

        :raises UnsafeState: the function fails, or returns neither bytes nor ``None``.
        """
        function = _function(self.function)
        return [self._answer(function, key) for key in keys]

    def _answer(self, function: Callable[[bytes], Any], key: bytes) -> bytes | None:
        try:
            answer = function(key)
        except Exception as error:
            raise self._wrong(key, f"{type(error).__name__}: {error}") from error
        if answer is None or isinstance(answer, bytes):
            return answer
        raise self._wrong(key, f"{answer!r}, which is of type {type(answer).__name__}")

    def _wrong(self, key: bytes, found: str) -> UnsafeState:
        return UnsafeState(
            f"partitioning_key {self.function} for changelog key 0x{key.hex()}",
            found=found,
            expected="the partitioning key as bytes, or None",
            remedy="Mend the function: return bytes, or None for a key in which it finds none.",
        )


def layout_named(text: str) -> KeyLayout:
    """Return the layout that an application file declares for a Processor-API store.

    :param text: ``whole``, ``drop-last-N``, ``first-N`` (N in bytes), or ``module:function``.
    :raises InvalidInput: the text is none of these, or the function can't be imported.
    """
    kind, _, number = text.rpartition("-")
    if text == "whole":
        return WHOLE
    if kind in {"drop-last", "first"} and number.isdecimal() and int(number) > 0:
        return Trimmed(suffix=int(number)) if kind == "drop-last" else First(int(number))
    if ":" in text:
        _function(text)
        return Called(text)
    raise InvalidInput(
        "partitioning_key",
        found=repr(text),
        expected="whole, drop-last-N, first-N (N bytes), or module:function",
        remedy="Say which bytes of the store's keys are the key of the records that it was made from.",
    )


@cache
def _function(name: str) -> Callable[[bytes], bytes | None]:
    found: Callable[[bytes], bytes | None] = named(
        "partitioning_key", name, "a function of a changelog key that returns its partitioning key"
    )
    return found
