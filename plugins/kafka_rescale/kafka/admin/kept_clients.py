"""kafka-python's admin clients, kept for the next request over the same connection.

A new client takes some 40 ms: it connects, and asks for versions and brokers. The pause has dozens of requests. A
kept client may not know a broker that came up since, so it is used only for requests to coordinators.
"""

from __future__ import annotations

import os
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
    client = KafkaAdminClient(client_id="kafka-rescale", **timeouts, **settings)
    # A frozen broker still accepts connections. A request waits until its connection is set up, and only this
    # limit, 10 s by default, ends that. The constructor doesn't take it.
    client._manager.config["socket_connection_setup_timeout_ms"] = timeout_ms
    return client


@contextmanager
def kept_client(connection: KafkaConnection) -> Iterator[Any]:
    """Lend a client that waits ``FIRST_SECONDS`` for an answer, and keep it if it has had one.

    Nobody else uses the client meanwhile. A client whose request has failed is closed, and so are those that rest:
    their connections, or what they know of coordinators, may be of no use any more.
    """
    client = _take_rested(connection)
    if client is None:
        client = admin_client(connection, FIRST_SECONDS)
    try:
        yield client
    except BaseException:
        _close(client)
        _close_all(_take(connection))
        raise
    _keep(connection, client)


def _take_rested(connection: KafkaConnection) -> Any:
    """Return the client that has rested for the shortest time; None if there is none, or if that was long."""
    clients = _take(connection, 1)
    if not clients or time.monotonic() - clients[0][0] < IDLE_SECONDS:
        return clients[0][1] if clients else None
    _close_all([*clients, *_take(connection)])
    return None


def _take(connection: KafkaConnection, at_most: int = AT_MOST) -> list[tuple[float, Any]]:
    """Take clients that rest, the one that has rested for the shortest time first."""
    with _LOCK:
        kept = _KEPT.get(connection)
        if kept is None:
            return []
        taken = kept.clients[-at_most:]
        del kept.clients[-at_most:]
        return taken[::-1]


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


def _forget_all() -> None:
    """Begin anew in a forked process: it has the clients, but not the threads that answer for them."""
    global _LOCK, _KEPT
    _LOCK, _KEPT = threading.Lock(), WeakKeyDictionary()


os.register_at_fork(after_in_child=_forget_all)
