"""End a process whose parent is gone.

Killing ``spark-submit`` kills only the JVM. Its Python child would go on (measured), and plain Python code in it
would keep writing beside the next attempt.
"""

from __future__ import annotations

import os
import threading

from kafka_rescale.spark.jobs.exit_codes import ORPHANED

CHECK_SECONDS = 0.2
_NAME = "kafka-rescale-watchdog"


def exit_with_parent() -> None:
    """Start a thread that ends this process, at once and hard, when its parent has ended. Call it once."""
    if any(thread.name == _NAME for thread in threading.enumerate()):
        return
    threading.Thread(target=_watch, args=(os.getppid(), threading.Event()), name=_NAME, daemon=True).start()


def _watch(parent: int, never: threading.Event) -> None:
    while os.getppid() == parent:
        never.wait(CHECK_SECONDS)
    os._exit(ORPHANED)
