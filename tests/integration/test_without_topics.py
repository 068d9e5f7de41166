"""An application that filters and maps has no topic of its own: nothing to copy, and all the rest all the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka_rescale.core.application import Mode
from kafka_rescale.core.journal import Captured, Phase
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.spark import catch_up
from kafka_rescale.spark.arguments import Arguments
from kafka_rescale.spark.job import Job

from tests.integration.spark_job_helpers import RUN, advance, begin, wait_for
from tests.support.inline_jobs import session
from tests.support.plans import stateless_plan

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("over", [Phase.QUIESCED, Phase.ROLLING_BACK])
def test_catch_up_waits_for_the_journals_word(
    over: Phase, broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = KafkaConnection(broker.client_config())
    plan = stateless_plan(Mode.BLUE_GREEN).model_copy(update={"application": unique})
    control = begin(connection, plan)
    monkeypatch.setattr(Job, "spark", session)
    monkeypatch.setattr(catch_up, "BEAT_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(
            catch_up.catch_up, Job("catch_up", Arguments(unique, RUN, 1, parallelism=1), connection)
        )
        before = wait_for(control, "catch_up", "ready").as_of_ms
        wait_until(lambda: control.read().results["catch_up"].as_of_ms > before, timeout=30, what="a heartbeat")
        advance(control, Phase.QUIESCING)
        assert not running.done()
        advance(control, over, captured=Captured() if over is Phase.QUIESCED else None)
        running.result(60)
    done = control.read().results["catch_up"]
    assert (done.state, done.detail) == ("done" if over is Phase.QUIESCED else "stopped", "attempt 1")
