"""How a driver and each of Spark's Python workers begin: they write their logs, and end with their parent."""

from __future__ import annotations

import logging

from kafka_rescale.kafka.client.library_logs import quieten_kafka_python
from kafka_rescale.spark.jobs.watchdog import exit_with_parent


def begin_process() -> None:
    """Let this process write its log, and end when its parent has ended. It may be called again."""
    exit_with_parent()
    _log_with_time()


def _log_with_time() -> None:
    """Let this process write its lines from INFO on, with their time. Without it, a worker drops most of them."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    quieten_kafka_python()
