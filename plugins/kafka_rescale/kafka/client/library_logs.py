"""What of the client libraries' own lines comes into our logs."""

from __future__ import annotations

import logging


def quieten_kafka_python() -> None:
    """Keep kafka-python from telling what nobody can mend, and what looks like a fault at night.

    On a busy machine it warns that reading an answer of thousands of partitions blocks its loop. While a broker is
    away, an idle client tells each connection that it has tried. Its exceptions say what our requests lack.
    """
    logging.getLogger("kafka").setLevel(logging.WARNING)
    for name in ("kafka.net", "kafka.cluster"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
