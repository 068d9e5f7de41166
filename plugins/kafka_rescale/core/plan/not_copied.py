"""What people are told of stores that have no changelog: nothing of them is copied, so nothing of them is proven.

A store without logging (``withLoggingDisabled()``) is only on the local disks of instances. Kafka Streams itself
begins with it empty wherever a task comes to another instance, and so does the next generation.
"""

from __future__ import annotations

from collections.abc import Sequence

NOT_COPIED = "not copied: no changelog"


def told_not_copied(stores: Sequence[str]) -> str:
    """Return which stores are not copied, in a sentence without its period; an empty text without such stores.

    :param stores: names of the stores without a changelog.
    """
    if not stores:
        return ""
    if len(stores) == 1:
        return f"Store {stores[0]} is {NOT_COPIED}, so it is empty when the new generation starts"
    return f"Stores {', '.join(stores)} are {NOT_COPIED}, so they are empty when the new generation starts"
