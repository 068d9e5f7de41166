"""The check whether a changelog record can be of a store type: by parts of the key, the value, and the headers.

For some types, the contents prove the type: for suppress buffers, foreign-key subscriptions, and the lists of
outer joins. For other types, only the times in the key differ from other bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS, PROCESSOR, ChangelogFormat, Content
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.formats.subscription_wrapper import parse
from kafka_rescale.core.formats.suppress_buffer import HEADER, version_of

LATEST_PLAUSIBLE_MS = 1 << 43
"""The year 2248. If a number in the place of a timestamp is not below this limit, it is no timestamp."""
LIKELY_TIMES_MS = range(946_684_800_000, 4_102_444_800_000)
"""From 2000 to 2100. A number in this range is hardly anything but a timestamp."""

_SUPPRESS_VERSIONS = (b"\x01", b"\x02", b"\x03")
_NO_DUPLICATES = ("window", "timestamped-window")


def why_not(form: ChangelogFormat, key: bytes) -> str:
    """Return the reason why a key can't be of a format, for a message. Empty if it can be of this format."""
    if form.layout.extract([key])[0] is None:
        return f"{len(key)} bytes, instead of {form.layout.expected}"
    times = times_in(form, key)
    if any(not 0 <= t < LATEST_PLAUSIBLE_MS for t in times) or times != sorted(times):
        return f"times of {', '.join(map(str, times))} ms"
    if form.store_type == "outer-join" and key[8] not in {0, 1}:
        return f"{key[8]} where the side of the join should be"
    if form.store_type in _NO_DUPLICATES and any(key[-4:]):
        return f"sequence number {int.from_bytes(key[-4:], 'big')}, which only stores that keep duplicates have"
    if form.store_type == "join-window" and not any(key[-4:]):
        return "sequence number 0, while a store that keeps duplicates counts from 1"
    return ""


def failure(form: ChangelogFormat, key: bytes) -> UnsafeState | None:
    """Return the error of a user's function that fails on a key. None if it does not fail, or there is none."""
    try:
        form.layout.extract([key])
    except UnsafeState as error:
        return error
    return None


def times_in(form: ChangelogFormat, key: bytes) -> list[int]:
    """Return the times of a key that is long enough, in the order in which they must ascend."""
    ends = [(at, at + 8 or None) for at in form.times]
    return [int.from_bytes(key[begin:end], "big", signed=True) for begin, end in ends]


def fits(form: ChangelogFormat, sample: Sample) -> bool:
    """Return whether a record can be of a format."""
    key = sample.key or b""
    if failure(form, key) is not None:
        return False
    return not why_not(form, key) and (sample.value is None or _value_fits(form, key, sample))


def _value_fits(form: ChangelogFormat, key: bytes, sample: Sample) -> bool:
    value = sample.value or b""
    if form.has(Content.BUFFERED):
        return version_of(sample.headers, value) is not None
    if form.has(Content.SUBSCRIPTIONS):
        found = parse(value)
        return found is not None and key[4 + int.from_bytes(key[:4], "big") :] == found.primary_key
    if form.store_type == "outer-join":
        return _is_list(value)
    return True


def _is_list(value: bytes) -> bool:
    """Return whether a value has the format of ``ListSerde``.

    The value begins with the byte 1 (elements of different sizes) and the number of elements. Before each element
    stands its size. An element begins with 1 (left) or 0 (right).
    """
    if value[:1] != b"\x01" or len(value) < 5:
        return False
    at = 5
    for _ in range(int.from_bytes(value[1:5], "big")):
        size = int.from_bytes(value[at : at + 4], "big", signed=True)
        at += 4 + size
        if size < 1 or at > len(value) or value[at - size] not in {0, 1}:
            return False
    return at == len(value)


def proven_formats(samples: Sequence[Sample]) -> list[ChangelogFormat]:
    """Return the formats that the contents of all samples prove. For most types, contents prove nothing.

    Several formats of suppress buffers may fit: the value does not say whether 8 bytes at the end of a key are the
    time of a window. ``likely_formats`` chooses, if nothing else does.
    """
    live = [s for s in samples if s.value is not None]
    if not live:
        return []
    found = [f for f in FORMATS.values() if _shows_itself(f) and all(fits(f, s) for s in samples)]
    buffered = [f for f in found if f.has(Content.BUFFERED)]
    if buffered and not all(_is_labelled(s) for s in live):
        found = [f for f in found if f not in buffered]
    return found


def likely_formats(found: Sequence[ChangelogFormat], samples: Sequence[Sample]) -> list[ChangelogFormat]:
    """Return the formats with likely times in the keys of all samples; if no format has them, all formats."""
    times = {f.store_type: [time for s in samples for time in times_in(f, s.key or b"")] for f in found}
    timed = [f for f in found if f.times and all(time in LIKELY_TIMES_MS for time in times[f.store_type])]
    return timed or list(found)


def _shows_itself(form: ChangelogFormat) -> bool:
    return form.content in {Content.BUFFERED, Content.SUBSCRIPTIONS} or form.store_type == "outer-join"


def _is_labelled(sample: Sample) -> bool:
    return any(name == HEADER and content in _SUPPRESS_VERSIONS for name, content in sample.headers)


def types_that_fit(samples: Sequence[Sample], declared: ChangelogFormat) -> list[str]:
    """Return the types that fit the samples of a store whose declared type does not fit."""
    if proven := proven_formats(samples):
        return [f.store_type for f in likely_formats(proven, samples)]
    timed = [
        f
        for f in FORMATS.values()
        if f.times and f is not declared and not _shows_itself(f) and all(fits(f, s) for s in samples)
    ]
    return [f.store_type for f in timed if f.store_type != PROCESSOR] or ["timestamped-key-value"]
