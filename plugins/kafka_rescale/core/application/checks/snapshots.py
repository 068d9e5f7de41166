"""Does the `snapshots:` section agree with the rest of the application file?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kafka_rescale.core.application.mistakes import Mistake, unknown
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.formats.changelog_formats import ChangelogFormat, Content

_OWN_VALUES = (Content.BUFFERED, Content.SUBSCRIPTIONS)


def snapshots_declared(application: Application) -> Iterator[Mistake]:
    """Yield every contradiction."""
    if application.snapshots is None:
        return
    known = {store.name: store for store in application.stores}
    names = [s.name for s in application.snapshots.stores]
    for index, declared in enumerate(application.snapshots.stores):
        place = ("snapshots", "stores", index)
        if declared.name not in known:
            yield unknown((*place, "name"), "store", declared.name, known)
            continue
        if Counter(names)[declared.name] > 1 and names.index(declared.name) != index:
            yield Mistake(
                (*place, "name"), f"{declared.name} a second time", "each once", "Delete one of the two."
            )
        if not known[declared.name].is_logged:
            yield Mistake(
                (*place, "name"),
                f"the store {declared.name}, which has no changelog",
                "stores with a changelog: snapshots are made of them",
                "Delete it.",
            )
            continue
        fmt = known[declared.name].format
        if declared.value and not has_plain_values(fmt):
            yield Mistake(
                (*place, "value"),
                f"a serde for values of type {fmt.store_type}",
                "none: Kafka Streams wraps these values in a format of its own",
                "Delete it; the bytes are in the snapshot.",
            )
        if declared.window_size_ms and not has_window_start(fmt):
            yield Mistake(
                (*place, "window_size_ms"),
                f"a window size for a store of type {fmt.store_type}",
                "one for window stores only; sessions have their end in the key",
                "Delete it.",
            )


def has_plain_values(fmt: ChangelogFormat) -> bool:
    """Return whether the application's own serde alone has written the values."""
    return fmt.content not in _OWN_VALUES and fmt.store_type != "outer-join"


def has_window_start(fmt: ChangelogFormat) -> bool:
    """Return whether keys have the start of a window but not its end."""
    return len(fmt.times) == 1 and fmt.times[0] < 0
