"""Has everything been processed, if the group of a bridge that has ended has lost its offsets?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage, Refused
from kafka_rescale.core.snapshots.request import SnapshotRequest
from kafka_rescale.core.snapshots.source import SnapshotSource
from kafka_rescale.kafka.reading import processed
from kafka_rescale.kafka.reading.processed import await_processed, left_over
from kafka_rescale.spark.snapshots import build
from kafka_rescale.spark.snapshots.build import SnapshotBuild

from tests.support.cluster.young_broker import YoungBroker

UNTIL_MS, GRACE_MS = 100, 30
CONNECTION: Any = None


@pytest.fixture(autouse=True)
def committed(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The committed offsets. The old topic has 10 records in each partition, all of that day.

    The broker that is asked first has just started, and does not know the topic yet.
    """
    offsets: dict[int, int] = {}
    admin: Any = YoungBroker({"orders": {0: 10, 1: 10}}, {})
    admin.committed = lambda *_: {"orders": offsets}

    def records(_: object, __: str, ranges: dict[int, tuple[int, int]], **___: bool) -> Iterator[Any]:
        for start, end in ranges.values():
            for at in range(start, end):
                yield SimpleNamespace(timestamp=lambda: (0, UNTIL_MS - 1), offset=lambda at=at: at)

    monkeypatch.setattr(processed, "ClusterAdmin", lambda _: admin)
    monkeypatch.setattr(processed, "read_ranges", records)
    return offsets


def wait(proven: PartitionOffsets | None = None) -> None:
    await_processed(
        CONNECTION, "bridge", ["orders"], UNTIL_MS, GRACE_MS, seconds=0.01, tell=lambda _: None, proven=proven
    )


def test_what_a_bridge_has_proven_needs_no_offsets() -> None:
    wait({"orders": {0: 10, 1: 10}})


def test_without_a_proof_an_offset_that_is_missing_stands_for_the_log_start() -> None:
    with pytest.raises(Outage, match="the first in orders-0 at 0"):
        wait()


def test_a_record_that_came_after_the_proof_is_waited_for() -> None:
    with pytest.raises(Outage, match="the first in orders-1 at 9"):
        wait({"orders": {0: 10, 1: 9}})


def test_a_topic_that_was_deleted_is_not_waited_for() -> None:
    await_processed(CONNECTION, "bridge", ["gone"], UNTIL_MS, GRACE_MS, seconds=0.01, tell=lambda _: None)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A build that reads a generation that has stopped at these offsets, and the topics that exist."""
    source = SnapshotSource("app", is_running=False, stopped_at={"orders": {0: 10}, "app-x-repartition": {0: 3}})
    request = SnapshotRequest(
        application="app", date="2026-01-05", location="/s", grace_ms=0, stores=(), inputs=("orders",)
    )
    built = SnapshotBuild(SimpleNamespace(connection=CONNECTION), request, source, Generations(running="app-g2"))  # type: ignore[arg-type]
    given = SimpleNamespace(build=built, topics={"orders", "app-x-repartition"}, left=list[str]())
    monkeypatch.setattr(build, "ClusterAdmin", lambda _: SimpleNamespace(list_topics=lambda: given.topics))
    monkeypatch.setattr(
        build, "left_over", lambda _, offsets, *__: given.left if offsets == source.stopped_at else []
    )
    return given


def test_records_that_it_left_between_its_sub_topologies_belong_to_the_day(stopped: SimpleNamespace) -> None:
    stopped.build._assert_processed()
    stopped.left = ["app-x-repartition-0 at 3"]
    with pytest.raises(Refused, match="left to its successor: app-x-repartition-0 at 3"):
        stopped.build._assert_processed()


def test_what_it_left_can_not_be_told_without_the_topic(stopped: SimpleNamespace) -> None:
    stopped.topics = {"orders"}
    with pytest.raises(Refused, match="found no topic app-x-repartition of the generation app"):
        stopped.build._assert_processed()


def test_an_offset_that_was_committed_since_counts_instead(committed: dict[int, int]) -> None:
    committed[1] = 10
    wait({"orders": {0: 10, 1: 9}})


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The times of the records of one partition, how far they were read, and how far the application is."""
    given = SimpleNamespace(of=list[int](), read=list[int](), committed={0: 0})

    def records(_: object, __: str, ranges: dict[int, tuple[int, int]], **___: bool) -> Iterator[Any]:
        for at in range(*ranges[0]):
            given.read.append(at)
            yield SimpleNamespace(timestamp=lambda at=at: (0, given.of[at]), offset=lambda at=at: at)

    def admin(_: object) -> Any:
        broker: Any = YoungBroker({"orders": {0: len(given.of)}}, {})
        broker.committed = lambda *_: {"orders": given.committed}
        return broker

    monkeypatch.setattr(processed, "ClusterAdmin", admin)
    monkeypatch.setattr(processed, "read_ranges", records)
    return given


class TestOutOfOrder:
    def test_a_record_of_the_day_behind_a_younger_one_is_waited_for(self, times: SimpleNamespace) -> None:
        times.of = [UNTIL_MS + 1, UNTIL_MS - 3, UNTIL_MS - 2]
        with pytest.raises(Outage, match="the first in orders-0 at 1"):
            wait()
        assert left_over(CONNECTION, {"orders": {0: 0}}, UNTIL_MS, GRACE_MS) == ["orders-0 at 1"]

    def test_the_look_ends_behind_the_grace(self, times: SimpleNamespace) -> None:
        times.of = [UNTIL_MS + GRACE_MS - 1, UNTIL_MS, *[UNTIL_MS + GRACE_MS] * 5_000, UNTIL_MS - 1]
        wait()
        assert left_over(CONNECTION, {"orders": {0: 0}}, UNTIL_MS, GRACE_MS) == []
        assert len(times.read) < 4_000

    def test_a_day_that_was_over_before_the_stop_is_whatever_comes_late(self, times: SimpleNamespace) -> None:
        times.of = [UNTIL_MS - 1, *[UNTIL_MS + GRACE_MS] * 3_000, UNTIL_MS - 1]
        assert left_over(CONNECTION, {"orders": {0: 2_900}}, UNTIL_MS, GRACE_MS) == []
        times.of = [*[UNTIL_MS + GRACE_MS] * 500, UNTIL_MS - 1, *[UNTIL_MS + GRACE_MS] * 600, UNTIL_MS - 1]
        stopped_at = {"orders": {0: 501}}
        assert left_over(CONNECTION, stopped_at, UNTIL_MS, GRACE_MS) == ["orders-0 at 1101"]

    def test_a_record_that_is_dated_ahead_does_not_end_the_look(self, times: SimpleNamespace) -> None:
        times.of = [UNTIL_MS + 365 * GRACE_MS, UNTIL_MS - 3]
        with pytest.raises(Outage, match="the first in orders-0 at 1"):
            wait()

    def test_an_application_that_has_not_passed_the_record_is_not_looked_at_again(
        self, times: SimpleNamespace
    ) -> None:
        """A partition may have millions of records before it."""
        times.of = [UNTIL_MS + 1] * 50 + [UNTIL_MS - 1]
        with pytest.raises(Outage, match="the first in orders-0 at 50"):
            wait()
        assert times.read == list(range(51))

    def test_one_that_has_passed_it_is_looked_at_from_there(
        self, times: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times.of = [UNTIL_MS + 1, UNTIL_MS - 1, UNTIL_MS + 1, UNTIL_MS - 1]

        def polled(condition: Callable[[], bool], **_: Any) -> None:
            for committed, is_processed in ((0, False), (2, False), (3, False), (4, True)):
                times.committed[0] = committed
                assert condition() is is_processed

        monkeypatch.setattr(processed, "poll_until", polled)
        wait()
        assert times.read == [0, 1, 2, 3]
