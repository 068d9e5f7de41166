"""How much of the cluster an expansion may use beside the running application, as its file declares it."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.application.fields import Strict, WholeNumber

FREE_DISK_PERCENT = 10
"""The default of ``free_disk_percent`` in the application file."""


class Pacing(Strict):
    """A limit of the copy and of the proof. Below it, the copy slows down by itself when it hurts the cluster.

    :param bytes_per_second: bytes of keys and values per second, over all tasks of a job. A person may set another
        limit while the expansion is in progress.
    """

    bytes_per_second: WholeNumber = Field(ge=1)
