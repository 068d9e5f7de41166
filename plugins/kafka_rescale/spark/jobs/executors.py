"""Whether a driver has an executor. Without one Spark waits for ever, and says so only in a log of its own."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import Complaint

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger("kafka_rescale.job")

LOOK_SECONDS = 10.0
PATIENCE_SECONDS = 180.0
"""A cluster that starts a machine for an executor takes minutes, too."""
AGAIN_SECONDS = 600.0
"""How often the log says again that there is no executor."""
STANDALONE = "spark://"
REMEDIES = {
    STANDALONE: "Other applications have all the cores or the memory, or no worker has so much: look at the "
    "master's page. Limit what lasts for days (`copy_cores`, `bridge_cores`) and what else runs there "
    "(spark.cores.max of `spark_conf`), ask for smaller executors (spark.executor.memory, spark.executor.cores), "
    "or add workers. The job begins by itself when there is room.",
    "": "Look at the queue, the quota or the pods of the cluster. Ask for smaller executors in `spark_conf`, or "
    "make room. The job begins by itself when there is room.",
}


class ExecutorWatch:
    """Looks beside a driver whether Spark's work waits for an executor.

    :param context: the driver's context, on a cluster.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._since = time.monotonic()
        self._logged: float | None = None
        self.waits = ""

    def look(self) -> None:
        """Look once, and let ``waits`` say what is missing if work has waited for minutes; the log says it too."""
        now = time.monotonic()
        if not self._is_starved():
            self._since, self._logged, self.waits = now, None, ""
            return
        if now - self._since < PATIENCE_SECONDS:
            return
        found, expected = f"no executor for {(now - self._since) / 60:.0f} min", f"one from {self._asked()}"
        self.waits = str(Complaint("", found, expected, self._remedy()))
        if self._logged is None or now - self._logged >= AGAIN_SECONDS:
            self._logged = now
            log.warning("%s", self.waits)

    def go_on(self) -> None:
        """Look again and again, until the context ends."""
        while True:
            try:
                self.look()
            except Exception as error:
                log.debug("Spark does not tell its executors: %s", error)
                return
            time.sleep(LOOK_SECONDS)

    def _is_starved(self) -> bool:
        # Between two jobs of Spark, dynamic allocation may give all executors back.
        if not self._context.statusTracker().getActiveStageIds():
            return False
        scala = self._context._jsc.sc()
        return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile())) == 0

    def _asked(self) -> str:
        conf, master = self._context.getConf(), str(self._context.master)
        size = conf.get("spark.executor.cores", "") or "any number of"
        memory = conf.get("spark.executor.memory", "") or "1g"
        most = conf.get("spark.cores.max", "") or "not set"
        limit = f" (spark.cores.max: {most})" if master.startswith(STANDALONE) else ""
        return f"{master}, with {size} cores{limit} and {memory} of memory"

    def _remedy(self) -> str:
        return next(text for prefix, text in REMEDIES.items() if str(self._context.master).startswith(prefix))


_watches: list[ExecutorWatch] = []
"""At most one, because a driver has one context."""


def watch_executors(context: SparkContext) -> None:
    """Begin to look whether this driver, on a cluster, has an executor. Later calls do nothing."""
    if _watches or context._jsc.sc().isLocal():
        return
    _watches.append(ExecutorWatch(context))
    threading.Thread(target=_watches[0].go_on, name="kafka-rescale-executors", daemon=True).start()


def missing_executor() -> str:
    """Return what this driver waits for, and the remedy; empty if it has an executor or has just begun."""
    return "".join(watch.waits for watch in _watches)
