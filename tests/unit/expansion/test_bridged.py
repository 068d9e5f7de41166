"""``bridged``: which records it waits for, while a broker that has just started hides topics or partitions."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.added_partitions import Added
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, TimedOut
from kafka_rescale.kafka.copy import bridging
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.operations.expansion import bridged
from kafka_rescale.operations.expansion.bridged import Passed, wait_until_bridged

from tests.support.cluster.young_broker import YoungBroker
from tests.unit.plan.test_repartitioned import plan

PLAN = plan(2, 4)
GROWN = Bridge(plan=PLAN.fingerprint, begun=True, added=(Added(topic="orders", count=3, ends={0: 0, 1: 0}),))
ENDS: PartitionOffsets = {"orders": {0: 10, 1: 10, 2: 1_200}}
CONNECTION: Any = None


class Bridging:
    """A promoted expansion whose bridge has copied nothing of partition 2, which was added since.

    :param young: what the broker that is asked first tells: partitions by topic.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, young: dict[str, int], ends: PartitionOffsets) -> None:
        state = ControlState(journal=Journal(plan=PLAN, phase=Phase.COMPLETE), bridge=GROWN)
        admin = YoungBroker(ends, young)
        positions = {("orders", 0): Position(10, Mark()), ("orders", 1): Position(10, Mark())}
        self.said: list[str] = []
        monkeypatch.setattr(bridged, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: state))
        monkeypatch.setattr(bridging, "ClusterAdmin", lambda _: admin)
        monkeypatch.setattr(bridging, "closing_consumer", lambda *_, **__: nullcontext())
        monkeypatch.setattr(
            bridging, "read_positions", lambda _, sources: {s: positions[s] for s in sources if s in positions}
        )

    def wait(self) -> Passed:
        """Wait for a moment, as the command does."""
        return wait_until_bridged("ordered", CONNECTION, topic="", seconds=0.01, say=self.said.append)


@pytest.mark.parametrize("young", [{}, {"orders": 3}], ids=["it knows no topic", "it knows all"])
def test_records_of_a_topic_that_a_broker_does_not_know_yet_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, young: dict[str, int]
) -> None:
    bridge = Bridging(monkeypatch, young, ENDS)
    with pytest.raises(TimedOut, match="1,200 of 1,200 records left"):
        bridge.wait()


def test_it_does_not_return_while_brokers_hide_partitions_of_the_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridged, "SETTLE_SECONDS", 0.05)
    bridge = Bridging(monkeypatch, {"orders": 2}, ENDS)
    with pytest.raises(ClusterOutage, match="brokers that know only 2 of 3 partitions of orders"):
        bridge.wait()
    assert not bridge.said


def test_a_topic_that_was_deleted_has_nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bridging(monkeypatch, {}, {}).wait() == Passed({"orders": {}}, 0, {"orders": "orders-p4"})
