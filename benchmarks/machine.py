"""The machine on which the figures were measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version

from testbed.jars import ensure_jars, require_java


def machine() -> dict[str, object]:
    """Return cores, memory and versions, but no name of the machine."""
    banner = subprocess.run([require_java(), "-version"], capture_output=True, text=True, check=True).stderr
    java = re.search(r'version "([^"]+)"', banner)
    clients = next(ensure_jars("kafka").glob("kafka-streams-[0-9]*.jar"))
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "java": java[1] if java else "",
        "kafka": clients.stem.removeprefix("kafka-streams-"),
        "spark": version("pyspark"),
        "confluent_kafka": version("confluent-kafka"),
    }
