"""kafka-python's admin clients, kept for the next request over the same connection.

A new client takes some 40 ms: it connects, and asks for versions and brokers. The pause has dozens of requests.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from kafka.admin import KafkaAdminClient

from kafka_rescale.kafka.client.connection import KafkaConnection

FIRST_SECONDS, REQUEST_SECONDS = 2.5, 10.0
"""How long the first client has for an answer, and how long later clients have at most."""

IDLE_SECONDS = 30.0
"""A client that has rested longer is not used again: what it knows of the brokers may be old."""
AT_MOST = 4
"""How many clients of a connection are kept, for threads that ask side by side."""


class _Kept:
    """The clients of one connection that nobody uses at the moment, with the moment of their last answer."""

    def __init__(self) -> None:
        self.clients: list[tuple[float, Any]] = []
        # The thread of a client would live as long as the process. At the end of the process, it ends by itself.
        weakref.finalize(self, _close_all, self.clients).atexit = False


_LOCK = threading.Lock()
_KEPT: WeakKeyDictionary[KafkaConnection, _Kept] = WeakKeyDictionary()


def admin_client(connection: KafkaConnection, seconds: float = REQUEST_SECONDS) -> Any:
    """Return a new admin client of kafka-python, for what confluent-kafka can't ask, or must not.

    :param seconds: how long it waits for an answer.
    """
    timeout_ms = round(seconds * 1000)
    timeouts = {"request_timeout_ms": timeout_ms, "bootstrap_timeout_ms": timeout_ms}
    settings = connection.kafka_python()
    if (provider := settings.get("sasl_oauth_token_provider")) is not None:
        provider.token()  # within the client a failure would only show as a timeout
    return KafkaAdminClient(client_id="kafka-rescale", **timeouts, **settings)


@contextmanager
def kept_client(connection: KafkaConnection) -> Iterator[Any]:
    """Lend a client that waits ``FIRST_SECONDS`` for an answer, and keep it if it has had one.

    Nobody else uses the client meanwhile. A client whose request has failed is closed: its connection, or what it
    knows of coordinators, may be of no use any more.
    """
    client = _rested(connection)
    if client is None:
        client = admin_client(connection, FIRST_SECONDS)
    try:
        yield client
    except BaseException:
        _close(client)
        raise
    _keep(connection, client)


def _rested(connection: KafkaConnection) -> Any:
    with _LOCK:
        kept = _KEPT.get(connection)
        clients = [] if kept is None else kept.clients
        newest = clients.pop() if clients else None
        if newest is not None and time.monotonic() - newest[0] < IDLE_SECONDS:
            return newest[1]
        old = [*clients, *([newest] if newest is not None else [])]
        clients.clear()
    _close_all(old)
    return None


def _keep(connection: KafkaConnection, client: Any) -> None:
    with _LOCK:
        clients = _KEPT.setdefault(connection, _Kept()).clients
        if is_room := len(clients) < AT_MOST:
            clients.append((time.monotonic(), client))
    if not is_room:
        _close(client)


def _close_all(clients: list[tuple[float, Any]]) -> None:
    for _, client in clients:
        _close(client)


def _close(client: Any) -> None:
    with suppress(Exception):
        client.close()
