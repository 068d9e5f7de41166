"""The free space of the brokers' disks, asked beside the work of a driver.

A broker that is frozen lets such a question last for seconds. Meanwhile the driver has to report, and within the
application's pause it has to give signs of life.
"""

from __future__ import annotations

import logging
import math
import time
from threading import Thread

from kafka_rescale.core.cluster import Disks
from kafka_rescale.core.control.pace import DiskRest
from kafka_rescale.core.expansion.pacing_disk import rest_of, untold
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms

LOOK_SECONDS = 30.0
"""From one question to the next: disks fill slowly, and each broker walks through its log dirs for an answer."""

log = logging.getLogger(__name__)


class DiskWatch:
    """Watches the log dirs with the copies of one plan; one question at a time.

    :param connection: that of the role ``copy``.
    :param seconds: from one question to the next.
    """

    def __init__(self, connection: KafkaConnection, plan: Plan, seconds: float = LOOK_SECONDS) -> None:
        self._connection, self._seconds = connection, seconds
        self._counts = {move.target: move.target_partitions for move in plan.moves}
        self._asked = -math.inf
        self._thread: Thread | None = None
        self._found: Disks | None = None
        self._is_told = False

    def look(self, percent: int, before: DiskRest | None) -> tuple[DiskRest | None, tuple[str, ...]]:
        """Return why the copy has to rest, and which brokers don't tell their free space; this does not wait.

        As long as there is no answer, nothing changes.

        :param percent: ``free_disk_percent`` of the application file.
        :param before: the present rest.
        """
        self._ask()
        if self._found is None:
            return before, ()
        return rest_of(self._found, self._counts, percent, before, now_ms()), tuple(untold(self._found))

    def _ask(self) -> None:
        is_open = self._thread is not None and self._thread.is_alive()
        if is_open or time.monotonic() - self._asked < self._seconds or not self._counts:
            return
        self._asked = time.monotonic()
        self._thread = Thread(target=self._read, name="log dirs", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._found = read_disks(self._connection, self._counts, Role.COPY)
        except Exception as error:
            # Whatever it is: it must not end the copy, and the next question may be answered.
            if not self._is_told:
                log.warning("the free space of the brokers is not known now, and changes nothing: %s", error)
                self._is_told = True
