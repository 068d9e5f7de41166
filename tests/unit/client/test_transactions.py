"""How an open transaction is named, and which open transactions will never end by themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin._transactions import (
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka.errors import ClusterAuthorizationFailedError
from kafka_rescale.kafka.admin import transactions
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import OpenTransaction, open_transactions
from kafka_rescale.kafka.client.connection import KafkaConnection

AT = TopicPartition("app-totals-changelog", 1)
OPEN = ProducerState(4001, 3, 7, 0, 0, current_transaction_start_offset=12)
IDLE = ProducerState(4002, 0, 7, 0, 0, current_transaction_start_offset=-1)
NAMED = OpenTransaction(*AT, 12, 4001, 3, "app-0", 2, "Ongoing", hangs=False)


class Client:
    """A client with the answers of partition leaders and of coordinators."""

    def __init__(self, coordinated: dict[str, TransactionDescription]) -> None:
        self._coordinated = coordinated

    def describe_producers(self, partitions: list[TopicPartition]) -> dict[TopicPartition, PartitionProducerState]:
        """Return a producer with an open transaction, and a producer without one."""
        return {at: PartitionProducerState([OPEN, IDLE]) for at in partitions}

    def list_transactions(self, producer_id_filters: list[int]) -> dict[int, list[TransactionListing]]:
        """Return the transactions that coordinator 2 knows."""
        state = TransactionState.ONGOING
        return {
            1: [],
            2: [TransactionListing(name, d.producer_id, state) for name, d in self._coordinated.items()],
        }

    def describe_transactions(self, transactional_ids: list[str]) -> dict[str, TransactionDescription]:
        """Return the details of the transactions."""
        return {name: self._coordinated[name] for name in transactional_ids}


def described(state: TransactionState, *partitions: TopicPartition) -> dict[str, TransactionDescription]:
    return {"app-0": TransactionDescription(2, state, 4001, 3, 60_000, 0, set(partitions))}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[OpenTransaction]]:
    """Return what is found if a partition's end is hidden and brokers answer like the given client."""

    def ends(
        _: ClusterAdmin, topics: list[str], read_committed: bool = True, **__: bool
    ) -> dict[str, dict[int, int]]:
        return {AT.topic: {0: 5, 1: 12 if read_committed else 14}}

    def find(client: Any) -> list[OpenTransaction]:
        @contextmanager
        def connected(_: KafkaConnection) -> Any:
            yield client

        monkeypatch.setattr(transactions, "admin_client", connected)
        monkeypatch.setattr(ClusterAdmin, "end_offsets", ends)
        return open_transactions(ClusterAdmin(KafkaConnection({"bootstrap.servers": "h:1"})), [AT.topic])

    return find


def test_one_that_goes_on_is_known_to_its_coordinator(found: Callable[[Any], list[OpenTransaction]]) -> None:
    assert found(Client(described(TransactionState.ONGOING, AT))) == [NAMED]
    assert str(NAMED) == (
        "transaction 'app-0' (Ongoing at coordinator 2, producer id 4001, epoch 3) on app-totals-changelog-1 "
        "since offset 12"
    )
    assert NAMED.remedy.startswith("Stop its producer")


def test_one_that_its_coordinator_has_done_with_hangs(found: Callable[[Any], list[OpenTransaction]]) -> None:
    [hanging] = found(Client(described(TransactionState.COMPLETE_COMMIT)))
    assert hanging == replace(NAMED, state="CompleteCommit", hangs=True)
    assert str(hanging).startswith("hanging transaction 'app-0' (CompleteCommit at coordinator 2")
    assert hanging.remedy == (
        "It will not end by itself: `kafka-transactions.sh abort --topic app-totals-changelog --partition 1 "
        "--start-offset 12`."
    )


def test_one_that_no_coordinator_tells_is_not_called_hanging(
    found: Callable[[Any], list[OpenTransaction]],
) -> None:
    [untold] = found(Client({}))
    assert untold.hangs is None
    assert str(untold) == "transaction (producer id 4001, epoch 3) on app-totals-changelog-1 since offset 12"
    # Brokers keep quiet about ids that a user may not describe. An abort would discard records of a live producer.
    assert "may not describe its transactional.id, or it hangs" in untold.remedy
    assert "If it is not in that list, stop its producer" in untold.remedy


def test_brokers_that_may_not_tell_are_no_further_failure(found: Callable[[Any], list[OpenTransaction]]) -> None:
    class Forbidden(Client):
        def describe_producers(self, partitions: list[TopicPartition]) -> Any:
            raise ClusterAuthorizationFailedError

    assert found(Forbidden({})) == []
