"""If a surviving blue writes after the promotion, the expansion can't end until a person accepts these writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion.survivors import assert_still
from kafka_rescale.operations.verify.accept import accept

from tests.support.situations import situation
from tests.support.small_application import write

pytestmark = pytest.mark.integration


def test_it_is_accepted_as_far_as_it_was_seen(client: dict[str, str], unique: str, tmp_path: Path) -> None:
    connection, changelog = KafkaConnection(client), f"{unique}-totals-changelog"
    admin, control = ClusterAdmin(connection), ControlTopic(connection, unique)
    admin.ensure_topic(changelog, 2, 1, {})
    plan = situation().plan.model_copy(update={"application": unique})
    captured = Captured(changelog_ends=admin.end_offsets([changelog]))
    journal = Journal(plan=plan, phase=Phase.STARTED, captured=captured)
    control.update(lambda _: {"journal": journal})
    application = load_application(write(tmp_path, unique))

    def blue_writes() -> None:
        producer = Producer(client)
        for _ in range(3):
            producer.produce(changelog, b"value", b"key", 1)
        assert producer.flush(20) == 0

    def accepts(finding: str) -> None:
        accept(application, connection, findings=[finding], by="ada", reason="its output is mended")

    def is_still() -> None:
        assert_still(admin, journal, control.read().acceptances)

    is_still()
    for last in (2, 5):
        with pytest.raises(Refused, match="expected a finding by exactly this name"):
            accepts(f"{changelog}-1:0-{last}")
        blue_writes()
        with pytest.raises(UnsafeState, match=f"found new records in {changelog}-1:0-{last};"):
            is_still()
        accepts(f"{changelog}-1:0-{last}")
        is_still()

    # The changelog is deleted: an acceptance of that does not cover the topic that an instance makes anew.
    for lost, change in (
        (f"lost:{changelog}", lambda: admin.delete_topics([changelog])),
        (f"lost:{changelog}:0", lambda: admin.ensure_topic(changelog, 3, 1, {})),
    ):
        with pytest.raises(Refused, match="expected a finding by exactly this name"):
            accepts(lost)
        change()
        with pytest.raises(UnsafeState, match=f"other topics by their names: {lost};"):
            is_still()
        accepts(lost)
        is_still()
