"""Snapshots and the watch work with exactly the documented ACLs, on a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.acls.needed import needed_acls
from kafka_rescale.core.autoscaling.decision import RunState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.roles import Role
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.request import request_of
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import open_transactions
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.preflight.permissions import permitted_state
from kafka_rescale.operations.preflight.sizing import advise
from kafka_rescale.operations.watch import watch
from kafka_rescale.spark.jobs.exit_codes import DONE
from kafka_rescale.spark.snapshots import tasks as snapshot_tasks
from kafka_rescale.spark.snapshots.job import snapshot
from kafka_rescale.web.kafka_source import KafkaSource

from testbed.processes import wait_until
from tests.support.processing.inline_jobs import run_job
from tests.support.secured import AFTER, REPARTITION, Secured, secured
from tests.support.small_application import KEYS

pytestmark = pytest.mark.integration

YESTERDAY = SnapshotDay((datetime.now(UTC) - timedelta(days=1)).date())


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The shop, whose file asks for snapshots, with exactly the documented ACLs."""
    directory = tmp_path_factory.mktemp("secured")
    with secured(directory, snapshots={"location": str(directory / "snapshots")}) as given:
        given.grant(given.acls)
        yield given


def only_for_snapshots(shop: Secured) -> list[Acl]:
    without = shop.application.model_copy(update={"snapshots": None})
    return [acl for acl in shop.acls if acl not in needed_acls(without, shop.topology)]


def taken(shop: Secured, monkeypatch: pytest.MonkeyPatch) -> int:
    """Take the snapshot of yesterday, and return the exit code."""
    monkeypatch.setattr(snapshot_tasks, "begin_process", lambda: None)
    request: Any = request_of(shop.application, shop.topology, YESTERDAY)
    return run_job(shop.connections[Role.COPY], "shop", "snapshot_shop/run-1", 1, request, snapshot)


def test_a_snapshot_is_taken_before_anything_has_ever_been_rescaled(
    shop: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = ClusterAdmin(KafkaConnection(shop.broker.internal_config))
    owner.commit("shop", owner.end_offsets(["orders", "customers", "payments", REPARTITION]))
    assert taken(shop, monkeypatch) == DONE
    result = ControlTopic(shop.connections[Role.PLAN], "shop").read().results[f"snapshot/{YESTERDAY}"]
    assert result.state == "done"
    assert shop.application.snapshots is not None
    day = pq.read_table(f"{shop.application.snapshots.location}/shop/per-customer/date={YESTERDAY}")
    assert sorted(day["key"].to_pylist()) == sorted(KEYS)


def test_preflight_names_each_that_only_snapshots_need(shop: Secured) -> None:
    extra = only_for_snapshots(shop)
    assert {acl.role for acl in extra} == {Role.COPY}
    for acl in extra:
        shop.revoke(acl)
        try:
            missing = f"(role copy): found no {acl.operation} on {acl.pattern};"
            wait_until(lambda missing=missing: missing in refused(shop), timeout=20, what=missing)  # type: ignore[misc]
        finally:
            shop.grant([acl])


def test_the_watch_sees_a_growth_and_remembers_what_it_has_decided(shop: Secured) -> None:
    ClusterAdmin(KafkaConnection(shop.broker.internal_config)).grow_topic("customers", AFTER)
    found = watch(
        shop.application.model_copy(update={"autoscaling_enabled": True}),
        shop.topology,
        shop.connections[Role.ADMIN],
        by="watch_shop/1",
        attempt=1,
        run_state=lambda _: RunState.ABSENT,
        now_ms=now_ms(),
    )
    remembered = ControlTopic(shop.connections[Role.PLAN], "shop").read()
    assert remembered.autoscaling == found.decision.record
    assert (remembered.results["watch"].run, remembered.results["watch"].state) == (
        "watch_shop/1",
        found.decision.outcome,
    )


def test_whoever_may_plan_is_told_which_count_would_serve_and_sees_the_page(
    shop: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = shop.connections[Role.PLAN]
    assert advise(shop.application, shop.topology, connection, seconds=1, threads=2)
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(shop.file.parent))
    page = KafkaSource(lambda _: connection).page("shop")
    assert page.summary.application == "shop"


def refused(shop: Secured) -> str:
    """Return the permissions that preflight finds missing for the copies."""
    connections = {role: shop.connections[role] for role in (Role.PLAN, Role.COPY)}
    try:
        permitted_state(shop.application, shop.topology, connections)
    except PreflightRefused as refusal:
        return "\n".join(map(str, refusal.findings))
    return ""


def test_a_live_transaction_that_a_role_may_not_describe_is_not_called_hanging(shop: Secured) -> None:
    topic, owner = "shop-per-customer-changelog", KafkaConnection(shop.broker.internal_config)
    producer = Producer({**shop.broker.internal_config, "transactional.id": "shop-live"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"total", b"customer")
    producer.flush(30)
    try:
        [told] = open_transactions(ClusterAdmin(owner), [topic])
        [untold] = open_transactions(ClusterAdmin(shop.connections[Role.COPY]), [topic])
    finally:
        producer.abort_transaction(30)
    assert (told.transactional_id, told.hangs) == ("shop-live", False)
    # An abort, which the remedy of a hanging transaction asks for, would discard the producer's records.
    assert (untold.transactional_id, untold.hangs) == ("", None)
    assert untold.producer_id == told.producer_id
