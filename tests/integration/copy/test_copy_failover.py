"""A live copy on three brokers goes on when one of them fails, in whatever way."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testbed.cluster import EmbeddedCluster
from testbed.cluster_roles import ClusterRoles
from tests.integration.failover_helpers import Beside, live_copy

pytestmark = pytest.mark.integration
FROZEN_SECONDS = 40
DEAD_SECONDS = 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def group_coordinator(beside: Beside) -> int:
    return ClusterRoles(beside.connection).group_coordinator(beside.plan.copy_group)


def transaction_coordinator(beside: Beside) -> int:
    first = next(iter(beside.copy.worker.writers.values())).unit
    return ClusterRoles(beside.connection).transaction_coordinator(first.transactional_id(beside.plan.green))


def leader(beside: Beside) -> int:
    return ClusterRoles(beside.connection).leader(beside.plan.moves[0].source)


# In `make test`, test_broker_faults.py kills a leader and a coordinator and restarts every broker beside jobs that
# copy.
@pytest.mark.slow
@pytest.mark.parametrize("who", [group_coordinator, leader])
def test_a_copy_goes_on_while_a_broker_is_dead(cluster: EmbeddedCluster, unique: str, who: object) -> None:
    assert callable(who)
    with live_copy(cluster, unique, exactly_once=True) as beside:
        victim = cluster.brokers[who(beside)]
        victim.kill()
        print(f"moves again after {beside.moves_again():.1f} s")
        time.sleep(DEAD_SECONDS)
        victim.start()
        cluster.await_healthy()
        beside.moves_again()


@pytest.mark.slow
@pytest.mark.parametrize("who", [group_coordinator, transaction_coordinator, leader])
def test_a_copy_goes_on_while_a_broker_is_frozen(cluster: EmbeddedCluster, unique: str, who: object) -> None:
    assert callable(who)
    with live_copy(cluster, unique, exactly_once=True) as beside:
        victim = cluster.brokers[who(beside)]
        victim.freeze()
        try:
            began = time.monotonic()
            print(f"moves again after {beside.moves_again():.1f} s")
            time.sleep(max(0.0, FROZEN_SECONDS - (time.monotonic() - began)))
        finally:
            victim.thaw()
        cluster.await_healthy()
        beside.moves_again()


@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_copy_goes_on_while_every_broker_is_restarted_twice(
    cluster: EmbeddedCluster, unique: str, exactly_once: bool
) -> None:
    with live_copy(cluster, unique, exactly_once=exactly_once) as beside:
        for _ in range(2):
            cluster.restart_each()
            print(f"moves again after {beside.moves_again():.1f} s")
