"""A pipeline whose program is edited: a stream in front of others changes the numbers of their sub-topologies."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka_rescale.core.errors import Refused
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.processing.processors import expand_processors

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import Growing
from tests.support.processing.growing_control import both, grow_input, live_and_control, same_results
from tests.support.processing.growing_load import write

pytestmark = pytest.mark.integration

EDITED = "behind_another_of"


@pytest.fixture
def pair(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> tuple[Growing, Growing]:
    """A pipeline whose input has grown from 2 to 4 partitions, and a control that stays as it is."""
    live, control = live_and_control(KafkaConnection(broker.client_config()), unique, tmp_path)
    live.admin.ensure_topic(f"{unique}-another", 1, 1, {})
    grow_input(live, control, 4)
    return live, control


def test_three_processors_of_two_keep_their_keys_behind_a_new_number(
    pair: tuple[Growing, Growing], broker: EmbeddedBroker
) -> None:
    """By its number, the sub-topology would begin with three processors, and read partition 3 by another one."""
    live, control = pair
    expand_processors(live.application, live.connection, 3)
    live.run()
    live.run()
    assert (live.counts.initial, live.counts.count) == (2, 3)
    # Its id is used by no task of the edited program: the stream in front has one partition.
    zombie = Producer({**broker.client_config(), "transactional.id": f"{live.application.application_id}-0_1"})
    zombie.init_transactions(30)
    zombie.begin_transaction()
    zombie.produce(f"{live.topic}-folded", b"late", b"late", partition=0)
    zombie.flush(30)

    live.program = EDITED
    both(live, control, 4, range(500, 700))
    with pytest.raises(Refused, match="other sub-topologies than in the last run"):
        expand_processors(live.application, live.connection, 4)
    live.run()
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(30)
    assert fenced.value.args[0].code() == KafkaError._FENCED
    counts = live.control.read().processors.sub_topologies
    assert (counts[0].count, counts[1].initial, counts[1].count) == (1, 2, 3)
    both(live, control, 4, range(700, 800))
    live.run()
    control.run()
    same_results(live, control, processors=3)


def test_an_edit_in_the_middle_of_an_expansion_is_refused_and_loses_nothing(
    pair: tuple[Growing, Growing],
) -> None:
    """Taken for four settled processors, the old ones would bury the keys that nobody has copied yet."""
    live, control = pair
    expand_processors(live.application, live.connection, 4)
    live.program = EDITED
    with pytest.raises(Refused, match="found the number 0 in the last run, and processors that are being added"):
        live.run()
    live.program = "of"
    both(live, control, 4, range(500, 600))
    live.run()
    live.run()
    live.program = EDITED
    both(live, control, 4, range(600, 700))
    live.run()
    control.run()
    same_results(live, control, processors=4)


def test_the_first_store_is_no_lost_state(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> None:
    """Taken for state that is gone, it would begin with two processors, below the four of its offsets."""
    live, _ = live_and_control(KafkaConnection(broker.client_config()), unique, tmp_path, program="stateless_of")
    live.admin.grow_topic(live.topic, 4)
    live.run()
    expand_processors(live.application, live.connection, 4)
    live.run()
    write(live.connection, live.topic, 4, range(100))
    live.run()
    assert live.counts.count == 4

    live.program = "of"
    write(live.connection, live.topic, 4, range(100, 200))
    live.run()
    assert (live.counts.initial, live.counts.count) == (2, 4)
    assert sum(int(value.partition(b":")[0]) for of in live.state().values() for value in of.values()) == 100
