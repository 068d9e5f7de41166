"""Whether Spark encrypts what drivers and executors send to each other: tasks have the Kafka settings in them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

AUTHENTICATED = "spark.authenticate"
ENCRYPTED = ("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")
"""Each of these settings lets Spark encrypt its connections."""


def hint_of_network(master: str, conf: Mapping[str, str]) -> str:
    """Return a hint for a person if secrets cross the network in the clear; empty if they don't.

    :param master: the Spark master. With a local one, nothing crosses the network.
    :param conf: the settings of a job; they come before those of ``spark-defaults.conf``.
    """
    if master.startswith("local"):
        return ""
    settings = {**_defaults(), **conf}
    on = {name for name in (AUTHENTICATED, *ENCRYPTED) if settings.get(name, "").strip().lower() == "true"}
    if AUTHENTICATED in on and on & {*ENCRYPTED}:
        return ""
    return (
        f"Spark tasks on {master} have the settings of the Kafka connection in them. Found no {AUTHENTICATED} and "
        f"{ENCRYPTED[0]} in `spark_conf` or this machine's spark-defaults.conf, so that anybody on the network of "
        "driver and executors may read them. Set both to true; docs/security.md says where the secret goes. If "
        "the cluster sets them elsewhere, or nobody else is on that network, there is nothing to do."
    )


def _defaults() -> dict[str, str]:
    """Return the settings in the ``spark-defaults.conf`` of this machine, if there is one that can be read."""
    try:
        text = (_directory() / "spark-defaults.conf").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    lines = [line.strip() for line in text.splitlines()]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _directory() -> Path:
    """Return where ``spark-submit`` looks for its files."""
    if directory := os.environ.get("SPARK_CONF_DIR"):
        return Path(directory)
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "conf"
    spec = find_spec("pyspark")
    return Path(spec.origin).parent / "conf" if spec and spec.origin else Path("conf")
