"""What of the client libraries' own lines comes into our logs."""

from __future__ import annotations

import logging


def quieten_kafka_python() -> None:
    """Keep kafka-python from telling every connection, and from warning of long steps.

    On a busy machine it warns that reading an answer of thousands of partitions blocks its loop. Nobody can mend
    that, and at night it looks like a fault.
    """
    logging.getLogger("kafka").setLevel(logging.WARNING)
    logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)
