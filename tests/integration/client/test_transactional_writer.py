"""A writer that has lost its transactional id is told so, in whichever call it learns of it."""

from __future__ import annotations

import time
from collections.abc import ItemsView
from typing import Any

import pytest
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.broker import EmbeddedBroker

pytestmark = pytest.mark.integration


class TakenMeanwhile(dict[str, bytes | None]):
    """Records for a write.

    After the first record, another writer takes the transactional id, and the rest come slowly.
    """

    def __init__(self, connection: KafkaConnection, transactional_id: str) -> None:
        super().__init__({f"k{number}": b"v" for number in range(3000)})
        self._taken_by = connection, transactional_id

    def items(self) -> ItemsView[str, bytes | None]:
        return self._slowly()  # type: ignore[return-value]

    def _slowly(self) -> Any:
        for number, item in enumerate(super().items()):
            if number == 1:
                TransactionalWriter(*self._taken_by)
            yield item
            time.sleep(0.01)


def test_one_that_hears_of_it_from_a_record_that_it_hands_over_is_fenced(
    broker: EmbeddedBroker, unique: str
) -> None:
    connection = KafkaConnection(broker.client_config())
    ClusterAdmin(connection).ensure_topic(unique, 1, 1, {})
    older = TransactionalWriter(connection, unique)
    for _ in range(2):
        with pytest.raises(Fenced, match=unique):
            older.write(unique, TakenMeanwhile(connection, unique))
