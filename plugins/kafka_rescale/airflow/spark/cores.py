"""How many cores of a standalone Spark cluster a job may take. By default its master gives it all free cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_rescale.airflow.spark.connection import require_spark_master
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import InputPolicy

MOST = "spark.cores.max"
OF_AN_EXECUTOR = "spark.executor.cores"
STANDALONE = "spark://"


def conf_of(application: Application, job: str) -> dict[str, str]:
    """Return the Spark settings of a job. A job that lasts for days gets a limit of cores.

    The copies are proven while ``catch_up`` and perhaps a bridge are at work. If one of them took every free core,
    the proof would wait for ever. Masters other than a standalone one ignore the limit.
    """
    conf = dict(application.spark_conf)
    if job == "bridge":
        conf[MOST] = str(application.bridge_cores)
    if job == "catch_up" and (application.copy_cores or MOST not in conf):
        conf[MOST] = str(application.copy_cores or 1)
    return conf


def fitting(conf: Mapping[str, Any], master: str) -> dict[str, Any]:
    """Return settings whose executors are not larger than the limit of cores.

    A standalone master launches only whole executors: within a smaller limit it would never launch one.
    """
    most, size = _whole(conf.get(MOST)), _whole(conf.get(OF_AN_EXECUTOR))
    if not master.startswith(STANDALONE) or not most or size <= most:
        return dict(conf)
    return {**conf, OF_AN_EXECUTOR: str(most)}


def room_needed(application: Application) -> str:
    """Return what a standalone cluster needs for the jobs that run side by side; empty if there is nothing to say.

    Only the cluster itself knows how large it is, so this is a sentence for a person.

    :raises RescaleError: as ``require_spark_master`` does.
    """
    master = require_spark_master(application.spark_conn_id)
    if not master.startswith(STANDALONE) or application.mode is Mode.IN_PLACE:
        return ""
    has_bridge = any(i.policy is InputPolicy.REPARTITIONED for i in application.inputs)
    kept = {job: conf_of(application, job)[MOST] for job in ("catch_up", *["bridge"] * has_bridge)}
    said = ", ".join(f"{job} {cores}" for job, cores in kept.items())
    memory = application.spark_conf.get("spark.executor.memory", "1g")
    least = sum(map(_whole, kept.values())) + 1
    return (
        f"Beside `prove`, these jobs keep cores of {master}: {said}. So it needs "
        f"{least} cores or more, and memory for up to as many executors of {memory}. "
        "With less, `prove` waits until there is room."
    )


def _whole(text: str | None) -> int:
    """Return a number of cores; 0 if there is none, or what Spark itself will refuse."""
    return int(text) if text and text.isdecimal() else 0
