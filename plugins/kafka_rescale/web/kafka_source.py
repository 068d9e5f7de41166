"""The contents of the page, read from the application files, the control topic and the brokers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.page.page import ApplicationPage, application_page
from kafka_rescale.core.page.summary import Summary, unknown
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.bridging import with_live_bridge
from kafka_rescale.operations.application.load import (
    application_files,
    files_by_name,
    load_application,
    refuse_namesakes,
    topology_of,
)
from kafka_rescale.web.kept import Kept

FRESH_SECONDS = 2.0
FILES_SECONDS = 10.0
CHECK_SECONDS = 4.0
LIST_SECONDS = CHECK_SECONDS + 1.0
READERS = 16
"""Threads that read for the list. Brokers that hang block only the threads of their own applications."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """The result of one look at an application. If the look failed, ``error`` says why and the rest is empty."""

    at_ms: int
    control: ControlState = field(default_factory=ControlState)
    report: dict[str, Any] = field(default_factory=dict)
    page: ApplicationPage | None = None
    error: str = ""


class KafkaSource:
    """Reads each application at most every two seconds, even if many people watch the page.

    :param connect: Returns the connection for an Airflow connection id. The page uses the connection
        of the role ``plan``, which may only read.
    """

    def __init__(self, connect: Callable[[str], KafkaConnection]) -> None:
        self._connect = connect
        self._files = Kept(_files, FILES_SECONDS)
        self._seen: dict[str, Kept[Seen]] = {}
        self._lock = Lock()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="kafka-rescale-list")

    def applications(self) -> list[str]:
        """Return the names of all applications. A file that can't be used counts under the name that its DAG has.

        :raises LookupError: The application files can't be found.
        """
        try:
            return list(self._files.get())
        except RescaleError as error:
            log.warning("The page could not read the application files: %s", error)
            raise LookupError("The application files can't be found: see the API server's log.") from None

    def summaries(self, application_ids: Sequence[str]) -> list[Summary]:
        """Return one line for each application; if brokers don't answer in time, the line that was read last."""
        kept = {each: self._kept(each) for each in application_ids}
        oldest_first = sorted(kept.items(), key=lambda item: item[1].last.at_ms if item[1].last else 0)
        looks = [self._readers.submit(each.get) for _, each in oldest_first]
        wait(looks, timeout=LIST_SECONDS)
        for look in looks:
            look.cancel()
        return [_line(each, kept[each].last) for each in application_ids]

    def summary(self, application_id: str) -> Summary:
        """Return an application's line."""
        return _line(application_id, self._look(application_id))

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
        return self._kept(application_id).get()

    def _kept(self, application_id: str) -> Kept[Seen]:
        with self._lock:
            first = Seen(0, error="This application is being read for the first time.")
            kept = Kept(lambda: self._read(application_id), FRESH_SECONDS, first=first)
            return self._seen.setdefault(application_id, kept)

    def _read(self, application_id: str) -> Seen:
        try:
            found = self._files.get().get(application_id)
            if not isinstance(found, Application):
                return Seen(now_ms(), error=found or f"There is no application {application_id!r} any more.")
            topology = topology_of(found)
            control, cluster = self._ask(found, topology)
            page = application_page(found, topology, control, cluster, now_ms())
            return Seen(page.as_of_ms, control, dict(control.report), page)
        except RescaleError as error:
            return Seen(now_ms(), error=str(error))
        except Exception as error:
            # The list must go on, whatever is wrong with one application. The text of the error goes only to the
            # log, because it may come from a secrets backend.
            log.exception("The page could not read %s", application_id)
            return Seen(
                now_ms(),
                error=f"The page could not read this application ({type(error).__name__}): "
                "see the API server's log.",
            )

    def _ask(self, application: Application, topology: Topology) -> tuple[ControlState, ClusterDescription]:
        connection = self._connect(application.kafka_conn_id_of(Role.PLAN))
        connection.check(CHECK_SECONDS)
        control = with_live_bridge(connection, ControlTopic(connection, application.application_id).read())
        return control, describe(ClusterAdmin(connection), application, topology, control.generations)


def _line(application_id: str, seen: Seen | None) -> Summary:
    if seen is None or seen.page is None:
        return unknown(application_id, seen.error if seen else "")
    return seen.page.summary


def _files() -> dict[str, Application | str]:
    """Return every application by its name. For a file that can't be used, the value is the reason."""
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
