"""Asking again whether an instance set runs: the API that a deployment asks may be away for a moment."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from kafka_rescale.core.errors import Outage

STATUS_SECONDS, PAUSE_SECONDS = 10.0, 1.0

log = logging.getLogger(__name__)


def status(ask: Callable[[], bool]) -> bool:
    """Return the first answer, and ask again for a while after a failure.

    Within a pause, one failing answer would otherwise be enough to end the cutover.

    :param ask: returns whether an instance set runs.
    :raises Outage: asking still fails.
    """
    deadline = time.monotonic() + STATUS_SECONDS
    while True:
        try:
            return ask()
        except Outage as outage:
            if time.monotonic() >= deadline:
                raise
            log.warning("%s It is asked again.", outage)
        time.sleep(PAUSE_SECONDS)
