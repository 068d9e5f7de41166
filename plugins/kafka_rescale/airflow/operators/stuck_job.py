"""End a Spark job that makes no progress, so that its task fails and nothing waits for it any more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from kafka_rescale.core.errors import RescaleError

log = logging.getLogger(__name__)


class EndWhenStuck:
    """Watches a job from a thread while the task waits for ``spark-submit``, and ends the job if it is stuck.

    :param look: returns the error about a stuck job, or None.
    :param pause_seconds: pause between two looks.
    :param end: ends the job. It is called again after each pause, until the wait for ``spark-submit`` is over.
    """

    def __init__(
        self, look: Callable[[], RescaleError | None], pause_seconds: float, end: Callable[[], None]
    ) -> None:
        self._look, self._pause_seconds, self._end = look, pause_seconds, end
        self._is_over = threading.Event()
        self._found: RescaleError | None = None
        self._thread = threading.Thread(target=self._watch, name="kafka-rescale-stuck-job", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the error about the job in place of the provider's error, which has only an exit code."""
        self._is_over.set()
        self._thread.join()
        if self._found is not None and isinstance(error, AirflowException):
            raise self._found from error

    def _watch(self) -> None:
        while not self._is_over.wait(self._pause_seconds):
            try:
                if self._found is None:
                    self._found = self._look()
                    if self._found is None:
                        continue
                    log.error("%s", self._found)
                self._end()
            except Exception:
                log.exception("a look at the job has failed")
