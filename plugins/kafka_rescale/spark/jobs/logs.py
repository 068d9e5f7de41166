"""How the processes of a job write their logs: a driver, and each of Spark's Python workers."""

from __future__ import annotations

import logging

from kafka_rescale.kafka.client.library_logs import quieten_kafka_python


def log_with_time() -> None:
    """Let this process write its lines from INFO on, with their time. Without it, a worker drops most of them."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    quieten_kafka_python()
