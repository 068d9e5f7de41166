"""The leader says which records a log has, so records are read from the leader, whatever rack a client is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading import committed, range_reader

CONNECTION = KafkaConnection({"bootstrap.servers": "localhost:1", "client.rack": "east"})


@pytest.mark.parametrize(
    ("module", "read"),
    [
        (range_reader, lambda: next(range_reader.read_ranges(CONNECTION, "orders", {0: (0, 1)}))),
        (committed, lambda: committed.copy_consumer(CONNECTION, "copies")),
    ],
    ids=["ranges", "copies"],
)
def test_records_are_read_from_leaders(module: Any, read: Callable[[], object], monkeypatch: Any) -> None:
    class Stop(Exception):
        pass

    def consumer(settings: dict[str, object]) -> object:
        assert settings["client.rack"] == ""
        raise Stop

    monkeypatch.setattr(module, "Consumer", consumer)
    with pytest.raises(Stop):
        read()
