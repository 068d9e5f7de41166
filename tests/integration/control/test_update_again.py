"""An update whose answer is lost: if it was carried out, this is found. If it was not, it is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

import pytest
from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import encoded
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import control_topic
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

pytestmark = pytest.mark.integration


@pytest.fixture
def control(client: dict[str, str], unique: str) -> ControlTopic:
    return ControlTopic(KafkaConnection(dict(client)), unique)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_is_resolved_by_reading(
    control: ControlTopic, monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    real = TransactionalWriter.write

    def lossy(writer: TransactionalWriter, topic: str, records: Mapping[str, bytes | None]) -> None:
        if carried_out:
            real(writer, topic, records)
        raise Outage("transaction", found="no answer", expected="one", remedy="")

    control.ensure(1)
    monkeypatch.setattr(TransactionalWriter, "write", lossy)
    # Instead of a minute, because one repetition shows as much.
    monkeypatch.setattr(control_topic, "UPDATE_SECONDS", 1)
    with nullcontext() if carried_out else pytest.raises(Outage):
        control.update(lambda _: {"report": {"written": True}})
    assert control.read().report == ({"written": True} if carried_out else {})


@pytest.mark.parametrize(
    ("concern", "is_tried_again"),
    [(Concern.ROLLING_PROOF, True), (Concern.BRIDGE, True), (Concern.ACCEPTANCES, False)],
)
def test_what_a_job_writes_meanwhile_does_not_end_the_tries(
    control: ControlTopic, monkeypatch: pytest.MonkeyPatch, concern: Concern, is_tried_again: bool
) -> None:
    real, tries = TransactionalWriter.write, list[int]()
    meanwhile = {Concern.ACCEPTANCES: Acceptances(), Concern.BRIDGE: Bridge(plan="")}.get(
        concern, {"stretches": 1}
    )

    def lost_once(writer: TransactionalWriter, topic: str, records: Mapping[str, bytes | None]) -> None:
        if writer is not beside:
            tries.append(1)
            if len(tries) == 1:
                key = f"{control.application}/{concern}"
                real(beside, topic, {key: encoded(meanwhile)})
                raise Outage("transaction", found="no answer", expected="one", remedy="")
        real(writer, topic, records)

    control.ensure(1)
    beside = TransactionalWriter(control.connection, f"{control.application}-beside")
    monkeypatch.setattr(TransactionalWriter, "write", lost_once)
    with nullcontext() if is_tried_again else pytest.raises(Outage):
        control.update(lambda _: {"report": {"written": True}})
    assert len(tries) == (2 if is_tried_again else 1)
