"""A keyed input whose producers never stop and never learn of new partitions.

Every record is processed once and in order per key.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.support.ordered import AFTER, BEFORE, NAME, OLD, Ordered
from tests.support.verify.spark_of_tests import run_here

pytestmark = pytest.mark.integration

NEW = f"{OLD}-p{AFTER}"


@contextmanager
def live(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Ordered, Expansion]]:
    """Let producers send, and an application run until it has written something. Both end with the block."""
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        ordered = Ordered(directory / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, directory / "run", runner=run_here)
        try:
            with ordered.live():
                yield ordered, expansion
        finally:
            if expansion.bridge is not None:
                expansion.bridge.wait(120)


@pytest.mark.parametrize(
    "seconds", [pytest.param(0, id="one-expansion"), pytest.param(600, id="10-minutes", marks=pytest.mark.slow)]
)
def test_every_record_is_processed_once_and_in_order_per_key(
    seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    :param seconds: the producers send for at least so long, with the expansion in between.
    """
    began = time.monotonic()
    with live(tmp_path, monkeypatch) as (ordered, expansion):
        timings = expansion.run()
        pause = ordered.longest_gap_seconds
        wait_until(lambda: time.monotonic() - began > seconds, timeout=seconds + 1, what="the time to pass")
        sent_before_end = sum(ordered.sent.values())
        ordered.stop_sending()
        wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        bridge = expansion.bridge
        assert bridge is not None
        assert bridge.wait(120) == 0, expansion.log_of("bridge")
        topics = ClusterAdmin(expansion.connection).describe_topics([OLD, NEW])
        ended = expansion.state().bridge
    print(f"{sent_before_end} records; consumers of the output saw a pause of {pause:.1f} s; {timings}")
    assert ordered.wrong() == {}
    assert (topics[OLD].partitions, topics[NEW].partitions) == (BEFORE, AFTER)
    assert topics[NEW].overrides == topics[OLD].overrides
    assert ended is not None
    assert ended.ended_at_ms, "the old topic is silent, so the bridge has ended by itself"


@pytest.mark.slow
def test_an_application_whose_input_was_grown_by_hand_is_rescued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application would die at its next rebalance. Here it is already down, and its input has two layouts."""

    def more_is_sent(than: int, what: str) -> None:
        wait_until(lambda: sum(ordered.sent.values()) > than + 2_000, timeout=120, what=what)

    with live(tmp_path, monkeypatch) as (ordered, expansion):
        admin = ClusterAdmin(expansion.connection)
        wait_until(lambda: len(admin.committed(NAME).get(OLD, {})) == BEFORE, timeout=120, what="all positions")
        assert ordered.run("stop", NAME) == 0
        more_is_sent(sum(ordered.sent.values()), "a backlog")
        ordered.grow_by_hand()
        more_is_sent(sum(ordered.sent.values()), "the other layout")
        expansion.run()
        ordered.stop_sending()
        wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
    assert ordered.wrong() == {}
