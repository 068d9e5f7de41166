"""What the page shows, read from the application files, the control topic and the brokers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from kafka_rescale.core.acls import Role
from kafka_rescale.core.application import Application
from kafka_rescale.core.application_page import ApplicationPage, application_page
from kafka_rescale.core.application_summary import Summary, unknown
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control_records import ControlState
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.topology import Topology
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.bridging import with_live_bridge
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.describe import describe
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.operations.load import (
    application_files,
    files_by_name,
    load_application,
    refuse_namesakes,
    topology_of,
)

T = TypeVar("T")
FRESH_SECONDS = 2.0
FILES_SECONDS = 10.0
CHECK_SECONDS = 4.0


@dataclass(frozen=True)
class Seen:
    """One look at an application; ``error`` says why there is nothing else."""

    at_ms: int
    control: ControlState = field(default_factory=ControlState)
    report: dict[str, Any] = field(default_factory=dict)
    page: ApplicationPage | None = None
    error: str = ""


class Kept(Generic[T]):
    """A value that is made anew when it is older than so many seconds; who comes meanwhile gets the last one.

    Airflow's server has some 40 threads for all of its pages: one per application may wait for brokers that hang.

    :param first: stands for the value while the very first one is made; without it, who comes then waits.
    """

    def __init__(
        self,
        make: Callable[[], T],
        seconds: float,
        *,
        first: T | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._seconds, self._clock = make, seconds, clock
        self._lock = Lock()
        self._value: tuple[float, T] | None = None if first is None else (-math.inf, first)

    def get(self) -> T:
        """Return the value."""
        last = self._value
        if not self._lock.acquire(blocking=last is None) and last is not None:
            return last[1]
        try:
            if self._value is None or self._clock() - self._value[0] > self._seconds:
                made = self._make()
                self._value = (self._clock(), made)
            return self._value[1]
        finally:
            self._lock.release()


class KafkaSource:
    """Reads each application at most every two seconds, however many people look.

    :param connect: gives the connection of an id: of what an application has for planning, which only reads.
    """

    def __init__(self, connect: Callable[[str], KafkaConnection] | None = None) -> None:
        self._connect = connect or _airflow_connection
        self._files = Kept(_files, FILES_SECONDS)
        self._seen: dict[str, Kept[Seen]] = {}
        self._lock = Lock()

    def applications(self) -> list[str]:
        """Return the names of all applications; of a file that can't be read, what its DAG is called after."""
        return list(self._files.get())

    def summary(self, application_id: str) -> Summary:
        """Return an application's line."""
        seen = self._look(application_id)
        return seen.page.summary if seen.page else unknown(application_id, seen.error)

    def page(self, application_id: str) -> ApplicationPage:
        """Return everything about an application."""
        seen = self._look(application_id)
        if seen.page is None:
            raise LookupError(seen.error)
        return seen.page

    def report(self, application_id: str) -> dict[str, Any]:
        """Return the last verification report."""
        seen = self._look(application_id)
        if seen.page is None:
            raise LookupError(seen.error)
        return seen.report

    def _look(self, application_id: str) -> Seen:
        with self._lock:
            first = Seen(now_ms(), error="It is being read for the first time.")
            kept = Kept(lambda: self._read(application_id), FRESH_SECONDS, first=first)
            known = self._seen.setdefault(application_id, kept)
        return known.get()

    def _read(self, application_id: str) -> Seen:
        found = self._files.get().get(application_id)
        try:
            if not isinstance(found, Application):
                return Seen(now_ms(), error=found or f"There is no application {application_id!r} any more.")
            topology = topology_of(found)
            control, cluster = self._ask(found, topology)
            page = application_page(found, topology, control, cluster, now_ms())
            return Seen(page.as_of_ms, control, dict(control.report), page)
        except RescaleError as error:
            return Seen(now_ms(), error=str(error))

    def _ask(self, application: Application, topology: Topology) -> tuple[ControlState, ClusterDescription]:
        connection = self._connect(application.kafka_conn_id_of(Role.PLAN))
        connection.check(CHECK_SECONDS)
        control = with_live_bridge(connection, ControlTopic(connection, application.application_id).read())
        return control, describe(ClusterAdmin(connection), application, topology, control.generations)


def _files() -> dict[str, Application | str]:
    """Return every application by its name; for a file that can't be used, why."""
    found: dict[str, Application | str] = {}
    files = application_files()
    by_name = files_by_name(files)
    for file in files:
        name, content = _file(file, by_name)
        found[name] = content
    return found


def _file(file: Path, by_name: Mapping[str, Sequence[Path]]) -> tuple[str, Application | str]:
    try:
        application = load_application(file)
        refuse_namesakes(application.application_id, by_name.get(application.application_id, ()))
    except RescaleError as error:
        return file.stem, str(error)
    return application.application_id, application


def _airflow_connection(conn_id: str) -> KafkaConnection:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    return KafkaRescaleHook(kafka_config_id=conn_id).connection()
