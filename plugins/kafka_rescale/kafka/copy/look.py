"""How far the logs go by now, asked beside the copy.

A worker must not wait for the answers. It used to ask its consumer, one partition after the other. A broker that
keeps a fetch waiting answers nothing else on that connection, so each answer took 20 ms and more: with 500
partitions, the copy stood still for 12 s at every look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from queue import Empty, SimpleQueue
from threading import Thread

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

Answer = tuple[int, dict[TopicPartition, int]]
"""Wall clock in ms before the question, and ends (exclusive) as a ``read_committed`` reader sees them."""


class Look:
    """Asks for the ends of some partitions now and then; one question at a time.

    :param admin: asks; nobody else may use it meanwhile.
    :param seconds: from one question to the next.
    :param clock: wall clock in ms.
    """

    def __init__(self, admin: ClusterAdmin, seconds: float, clock: Callable[[], int]) -> None:
        self._admin, self._seconds, self._clock = admin, seconds, clock
        self._asked = time.monotonic()
        self._thread: Thread | None = None
        self._answers = SimpleQueue[Answer | Exception]()

    def take_answer(self) -> Answer | None:
        """Take the answer to the last question, which comes once; None as long as there is none.

        :raises RescaleError: the brokers have refused the question.
        """
        try:
            found = self._answers.get_nowait()
        except Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def ask(self, partitions: Callable[[], Collection[TopicPartition]]) -> None:
        """Ask for the ends, unless it is too early, or the last question is still open.

        :param partitions: called if there is a question to ask.
        """
        if time.monotonic() - self._asked < self._seconds or (
            self._thread is not None and self._thread.is_alive()
        ):
            return
        self._asked = time.monotonic()
        self._thread = Thread(target=self._put_answer, args=[list(partitions())], name="ends", daemon=True)
        self._thread.start()

    def _put_answer(self, partitions: Collection[TopicPartition]) -> None:
        asked_ms = self._clock()
        try:
            self._answers.put((asked_ms, self._admin.ends_of(partitions)))
        except Outage:
            return  # a broker restarts; `stall_seconds` bounds how long the copy itself waits
        except Exception as error:
            self._answers.put(error)
