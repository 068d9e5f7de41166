"""A live application whose source reads a pattern is expanded. Its file pins the topics that match today."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from tests.integration.expansion.test_stores_control_run import (
    BLUE,
    CONTROL,
    GREEN,
    assert_equals_live_control,
    await_state,
    fed,
)
from tests.support.feeder import INPUT_PARTITIONS, Feeder
from tests.support.stores_application import StoresApplication, environment_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BEFORE, AFTER = 3, 6
PATTERN, TOPICS, ANOTHER = "left-(de|fr|it)", ("left-de", "left-fr"), "left-it"


class ByTopic(Feeder):
    """Sends each key to one topic only, because records of two topics have no order."""

    def _record(self, topic: str, turn: int) -> tuple[str, str]:
        key, value = super()._record("left", turn)
        return f"{topic}-{key}", value


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_it_ends_as_one_that_was_never_rescaled(guarantee: str, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(
            "plain", tmp_path, broker.bootstrap_servers, guarantee, pattern=PATTERN, matching=",".join(TOPICS)
        )
        admin, feeder = ClusterAdmin(app.connection), fed(app, kind=ByTopic)
        inputs = [{"topic": topic, "policy": "unkeyed"} for topic in TOPICS]
        with environment_of(app):
            try:
                app.start(BLUE, BEFORE)
                await_state(app, BLUE)
                expansion = Expansion.of_file(
                    app.write_file(AFTER, inputs=inputs), broker.bootstrap_servers, tmp_path / "run"
                )
                admin.ensure_topic(ANOTHER, INPUT_PARTITIONS, 1, {})
                with pytest.raises(PreflightRefused, match=f"found {ANOTHER}, which matches it too"):
                    expansion.begin()
                admin.delete_topics([ANOTHER])
                timings = expansion.run()
                assert {t.partitions for t in admin.describe_topics(TOPICS).values()} == {AFTER}
                assert_equals_live_control(app, feeder, GREEN, BEFORE, AFTER)
            finally:
                for name in (BLUE, GREEN, CONTROL):
                    app.stop(name)
        print(f"{PATTERN} {guarantee}: {timings}")
