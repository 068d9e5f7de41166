"""A new topic matches the pattern of a source while an expansion goes on."""

from __future__ import annotations

import logging

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover import cutover
from kafka_rescale.operations.cutover.cutover import Cutover
from kafka_rescale.operations.cutover.pinned_topics import warn_of_unpinned
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.small_application import application, topic_configs, topology_text

pytestmark = pytest.mark.integration

OWNER = "shell/test/1"


@pytest.fixture
def rescale(client: dict[str, str], unique: str) -> Rescale:
    """An application that reads its customers by a pattern, and its expansion, which has begun."""
    connection = KafkaConnection(client)
    admin, control = ClusterAdmin(connection), ControlTopic(connection, unique)
    for name, configs in topic_configs(unique).items():
        admin.ensure_topic(name, 4, 1, configs)
    pattern, topic = f"{unique}-custom(er|ar)s", f"{unique}-customers"
    text = topology_text(unique).replace(f"[{topic}]", pattern)
    declared = application(unique, topology=text, source_patterns={pattern: [topic]})
    counts = dict.fromkeys(topic_configs(unique), 4)
    plan = build_plan(declared, topology_of(declared), blue=unique, generation=2, current=counts, target=8)
    control.ensure(1)
    lease = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=2**60)
    control.update(lambda _: {"lease": lease, "journal": Journal(plan=plan, owner=OWNER)})
    return Rescale.open(declared, connection, OWNER)


def test_before_the_pause_it_is_named_and_nothing_is_stopped(
    rescale: Rescale, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests cover the jobs beside the cutover, the positions and the proof.
    for looked_at in ("assert_begun", "await_near_proof", "await_positions"):
        monkeypatch.setattr(cutover, looked_at, lambda *_: None)
    monkeypatch.setattr(cutover, "mode_of", lambda _: _Ready)
    rescale.admin.ensure_topic(f"{rescale.application.application_id}-customars", 3, 1, {})
    with pytest.raises(UnsafeState, match=r"source pattern .*: found .*-customars, new since the ex"):
        Cutover(rescale)._prepare(rescale.journal())
    assert rescale.journal().phase is Phase.WARMING


def test_within_the_pause_it_keeps_the_next_generation_from_being_promoted(
    rescale: Rescale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutover, "mode_of", lambda _: _Ready)
    monkeypatch.setattr(cutover, "assert_promotable", lambda *_: None)
    monkeypatch.setattr(cutover, "assert_proven", lambda *_: None)
    rescale.admin.ensure_topic(f"{rescale.application.application_id}-customars", 3, 1, {})
    with pytest.raises(UnsafeState, match=r"goes on; this attempt is rolled back.*trigger the expansion again"):
        Cutover(rescale)._promote(rescale.journal())
    assert not rescale.journal().is_promoted


def test_behind_the_promotion_it_is_said(rescale: Rescale, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_unpinned(rescale)
        assert caplog.text == ""
        rescale.admin.ensure_topic(f"{rescale.application.application_id}-customars", 3, 1, {})
        warn_of_unpinned(rescale)
    assert "customars, new since the promotion. The new generation reads it from where auto.offset" in caplog.text


class _Ready:
    """A mode whose jobs are ready."""

    @staticmethod
    def prepare(*_: object) -> None:
        """Nothing is left to do."""

    @staticmethod
    def jobs_behind(_: object) -> tuple[str, ...]:
        """No job is asked."""
        return ()

    @staticmethod
    def offsets_at_promotion(*_: object) -> tuple[dict[str, object], dict[str, object]]:
        """Nothing was captured."""
        return {}, {}
