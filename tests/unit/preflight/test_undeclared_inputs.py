"""An input that the topology lacks would be processed again, or skipped: preflight names it."""

from __future__ import annotations

from dataclasses import replace

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import RUNNING, found, situation

READ = ("shop-orders", "shop-customers", "shop-by-customer-repartition")


def with_group(*topics: str) -> Situation:
    assigned = {"m": frozenset((topic, p) for topic in topics for p in range(4))}
    return situation(group=replace(RUNNING, members=("m",), assigned=assigned))


def with_offsets(group: GroupDescription, *topics: str) -> Situation:
    committed = {(topic, p): 5 for topic in topics for p in range(4)}
    return situation(group=group, cluster={"committed": committed})


def test_what_the_topology_names_is_read_by_the_members() -> None:
    assert found(with_group(*READ)) == []


def test_a_topic_that_the_members_read_and_the_topology_lacks_is_refused() -> None:
    (finding,) = found(with_group(*READ, "shop-returns"))
    assert finding.startswith(
        "inputs of 'shop': found shop-returns, which its members read and the topology does not name; expected "
    )
    assert "declare each external topic in `inputs:`" in finding


def test_a_topic_that_a_stopped_application_has_read_is_hinted_at() -> None:
    stopped = GroupDescription("shop", "Empty")
    (hint,) = [m for m in messages(with_offsets(stopped, *READ, "shop-returns")) if "shop-returns" in m]
    assert hint.startswith("shop has committed offsets in shop-returns, which the topology does not name.")


def test_offsets_of_what_a_live_application_no_longer_reads_are_no_finding() -> None:
    given = with_offsets(with_group(*READ).cluster.group, *READ, "shop-returns")
    assert not [line for line in [*found(given), *messages(given)] if "shop-returns" in line]
