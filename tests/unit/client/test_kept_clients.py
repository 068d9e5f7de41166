"""kafka-python's clients are kept for the next request, and given up when they fail or have rested."""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka_rescale.kafka.admin import kept_clients
from kafka_rescale.kafka.admin.kept_clients import AT_MOST, IDLE_SECONDS, admin_client, kept_client
from kafka_rescale.kafka.client.connection import KafkaConnection


class Client:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    clients: list[Client] = []

    def make(*_: Any) -> Client:
        clients.append(Client())
        return clients[-1]

    monkeypatch.setattr(kept_clients, "admin_client", make)
    return clients


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> KafkaConnection:
    return KafkaConnection({"bootstrap.servers": "127.0.0.1:1", "client.id": request.node.name})


def test_the_next_request_uses_the_same_client(made: list[Client], connection: KafkaConnection) -> None:
    with kept_client(connection) as first:
        pass
    with kept_client(connection) as second:
        assert second is first
    assert len(made) == 1


def test_a_client_whose_request_failed_is_not_used_again(made: list[Client], connection: KafkaConnection) -> None:
    with pytest.raises(KafkaConnectionError), kept_client(connection):
        raise KafkaConnectionError
    with kept_client(connection) as second:
        assert second is made[1]
    assert [client.closed for client in made] == [1, 0]


def test_clients_that_rest_are_given_up_when_another_one_fails(
    made: list[Client], connection: KafkaConnection
) -> None:
    with kept_client(connection), kept_client(connection):
        pass
    with pytest.raises(KafkaConnectionError), kept_client(connection):
        raise KafkaConnectionError
    assert [client.closed for client in made] == [1, 1]


def test_a_forked_process_has_clients_of_its_own(made: list[Client], connection: KafkaConnection) -> None:
    with kept_client(connection):
        pass
    if (child := os.fork()) == 0:
        with kept_client(connection) as client:
            os._exit(0 if client is not made[0] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_connection_is_not_set_up_for_longer_than_an_answer_may_take(
    connection: KafkaConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A frozen process accepts connections, and says nothing: 10 s by default, whatever a request may take.
    manager = SimpleNamespace(config={"socket_connection_setup_timeout_ms": 10_000})
    monkeypatch.setattr(kept_clients, "KafkaAdminClient", lambda **_: SimpleNamespace(_manager=manager))
    admin_client(connection, 2.5)
    assert manager.config == {"socket_connection_setup_timeout_ms": 2_500}


def test_requests_side_by_side_have_a_client_each(made: list[Client], connection: KafkaConnection) -> None:
    with kept_client(connection) as first, kept_client(connection) as second:
        assert first is not second


def test_not_more_clients_are_kept_than_are_needed(made: list[Client], connection: KafkaConnection) -> None:
    def nested(depth: int) -> None:
        with kept_client(connection):
            if depth:
                nested(depth - 1)

    nested(AT_MOST)
    assert sum(client.closed for client in made) == 1


def test_a_client_that_has_rested_for_long_is_not_used_again(
    made: list[Client], connection: KafkaConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(kept_clients, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with kept_client(connection):
        pass
    now[0] = IDLE_SECONDS + 1
    with kept_client(connection) as second:
        assert second is made[1]
    assert made[0].closed == 1


def test_clients_end_with_their_connection(made: list[Client]) -> None:
    connection = KafkaConnection({"bootstrap.servers": "127.0.0.1:1", "client.id": "short-lived"})
    with kept_client(connection):
        pass
    del connection
    gc.collect()
    assert made[0].closed == 1


def test_connections_do_not_share_clients(made: list[Client], connection: KafkaConnection) -> None:
    other = KafkaConnection({"bootstrap.servers": "127.0.0.1:2"})
    with kept_client(connection):
        pass
    with kept_client(other) as second:
        assert second is made[1]
