"""KIP-878's timeout with a real clock and real refusals of brokers: by an authorizer and by a quota."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.protocol.admin import AlterClientQuotasRequest
from kafka_rescale.core.autoscaling.decision import Outcome, RunState
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion.begin import begin
from kafka_rescale.operations.expansion.stages import expand_stage
from kafka_rescale.operations.preflight.preflight import preflight
from kafka_rescale.operations.watch import Watched

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.secured import authorizing_broker
from tests.support.situations import all_placed_by
from tests.support.small_application import records, write
from tests.support.small_cluster import make
from tests.support.watched_shop import ON, Shop

pytestmark = [pytest.mark.integration, pytest.mark.slow]
TIMEOUT_MS = 15_000
GROWER = "User:grower"
ON_EVERYTHING = tuple(
    (kind, "*", AclOperation.ALL)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
)
# The rules on topics decide whether topics can be created.
ON_THE_CLUSTER = tuple(
    (ResourceType.BROKER, "kafka-cluster", operation)
    for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.IDEMPOTENT_WRITE)
)
QUOTA_EXCEEDED = 89
NO_RIGHT = "TOPIC_AUTHORIZATION_FAILED"
STATIC = "static:tests.support.user_partitioners:pinned"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker with an authorizer, and a user who may do everything."""
    with authorizing_broker(tmp_path / "broker") as running:
        allowed = [rule(*each, AclPermissionType.ALLOW) for each in (*ON_EVERYTHING, *ON_THE_CLUSTER)]
        add_rules(running.client_config("root"), allowed)
        yield running


def rule(kind: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    """A rule for the user ``grower``."""
    return AclBinding(kind, name, ResourcePatternType.LITERAL, GROWER, "*", operation, permission)


def add_rules(root: Mapping[str, str], rules: Sequence[AclBinding]) -> None:
    """Give the authorizer rules."""
    admin = AdminClient(dict(root))  # keep it alive: its futures need it
    for future in admin.create_acls(list(rules)).values():
        future.result(20)


class Attempted(Shop):
    """The application with the wall clock. An expansion grows its output first, then makes topics."""

    def watched(self) -> Watched:
        """Look now."""
        self.now_ms = now_ms()
        return self.look(later_ms=0, **self.fields)

    @property
    def fields(self) -> dict[str, Any]:
        """The additional fields of its file."""
        return {
            **ON,
            **all_placed_by(self.name, STATIC),
            "partition.autoscaling.timeout.ms": TIMEOUT_MS,
            "outputs": [{"topic": self.output, "partitions": 8}],
        }

    @property
    def output(self) -> str:
        """Its output topic."""
        return f"{self.name}-totals"

    @property
    def first_failure_ms(self) -> int:
        """The time of the first failure, or 0 without a failure."""
        remembered = self.remembered()
        return remembered.first_failure_ms if remembered is not None else 0

    def expands(self) -> str:
        """Look, run the expansion that is asked for, and return its error, or "" if it succeeds."""
        self.now_ms = now_ms()
        run = self.triggered(later_ms=0, **self.fields)
        application = load_application(write(self.directory, self.name, **self.fields))
        try:
            found = preflight(
                application,
                topology_of(application),
                self.connection,
                target=8,
                owner=run,
                now_ms=now_ms(),
                owner_is_finished=lambda _: True,
            )
            assert found.plan is not None
            begin(
                application,
                self.connection,
                found.plan,
                owner=run,
                now_ms=now_ms(),
                owner_is_finished=lambda _: True,
            )
            for stage in found.plan.stages:
                expand_stage(application, self.connection, owner=run, stage=stage.index)
        except RescaleError as error:
            self.runs[run] = RunState.FAILED
            return str(error)
        return ""


@pytest.fixture
def shop(guarded: EmbeddedBroker, tmp_path: Path, unique: str) -> Attempted:
    # A person may grow its keyed input, because the partitioner is static.
    made = {topic.removeprefix(f"{unique}-"): its for topic, its in records(unique, 4, STATIC).items()}
    make(guarded.client_config("root"), unique, spoilt=made)
    shop = Attempted(guarded.client_config("grower"), unique, tmp_path)
    wait_until(
        lambda: shop.watched().decision.outcome is Outcome.IN_LINE, timeout=30, what="everything to be allowed"
    )
    return shop


def deny(root: Mapping[str, str], topic: str, operation: AclOperation) -> AclBinding:
    """Let the authorizer refuse an operation on a topic."""
    denied = rule(ResourceType.TOPIC, topic, operation, AclPermissionType.DENY)
    add_rules(root, [denied])
    return denied


def take_back(root: Mapping[str, str], denied: AclBinding) -> None:
    """Remove a refusal from the authorizer."""
    wanted = AclBindingFilter(
        denied.restype,
        denied.name,
        denied.resource_pattern_type,
        denied.principal,
        denied.host,
        denied.operation,
        denied.permission_type,
    )
    admin = AdminClient(dict(root))
    for future in admin.delete_acls([wanted]).values():
        assert len(future.result(20)) == 1


def await_right(shop: Attempted, *, wanted: bool) -> None:
    """Wait until the authorizer applies its rules about the growth of the output."""
    admin = ClusterAdmin(shop.connection)

    def has_right() -> bool:
        try:
            admin.validate_growth({shop.output: 8})
        except RescaleError:
            return False
        return True

    wait_until(lambda: has_right() is wanted, timeout=30, what=f"the right to grow the output to be {wanted}")


def wait_past(at_ms: int) -> None:
    """Wait until the timeout has passed since a time."""
    wait_until(lambda: now_ms() > at_ms + TIMEOUT_MS, timeout=60, what="the timeout to be over")


def test_what_an_authorizer_refuses_is_retried_until_the_timeout_is_over_since_the_first_failure(
    guarded: EmbeddedBroker, shop: Attempted
) -> None:
    root = guarded.client_config("root")
    denied = deny(root, shop.output, AclOperation.ALTER)
    await_right(shop, wanted=False)
    shop.grow(customers=8)
    asked_ms = now_ms()
    assert f"{shop.output}': found {NO_RIGHT}" in shop.expands()
    wait_past(asked_ms)
    # The attempt has lasted longer than the timeout. But the timeout counts only from its failure.
    assert f"{shop.output}': found {NO_RIGHT}" in shop.expands()
    first_ms = shop.first_failure_ms
    assert first_ms > asked_ms + TIMEOUT_MS
    assert f"{shop.output}': found {NO_RIGHT}" in shop.expands()
    assert shop.first_failure_ms == first_ms
    wait_past(first_ms)
    last = shop.watched()
    assert last.decision.outcome is Outcome.GAVE_UP
    assert last.just_gave_up
    assert not last.decision.is_quiet

    take_back(root, denied)
    await_right(shop, wanted=True)
    again = shop.watched()
    assert (again.decision.outcome, again.just_gave_up) == (Outcome.GAVE_UP, False)
    assert (again.decision.trigger, again.decision.error) == (None, None)
    remembered = shop.remembered()
    assert remembered is not None
    assert remembered.failures == 1
    # A success starts the timeout anew.
    shop.grow(totals=8)
    assert shop.expands() == ""


def test_a_success_between_two_refusals_resets_the_timeout(guarded: EmbeddedBroker, shop: Attempted) -> None:
    root, green = guarded.client_config("root"), f"{shop.name}-g2-visits-changelog"
    denied = deny(root, shop.output, AclOperation.ALTER)
    deny(root, green, AclOperation.CREATE)
    await_right(shop, wanted=False)
    shop.grow(customers=8)
    assert f"{shop.output}': found {NO_RIGHT}" in shop.expands()
    take_back(root, denied)
    await_right(shop, wanted=True)
    # This expansion grows the output. Then the broker refuses a topic of the next generation.
    assert f"{green}': found {NO_RIGHT}" in shop.expands()
    first_ms = shop.first_failure_ms
    assert ClusterAdmin(shop.connection).describe_topics([shop.output])[shop.output].partitions == 8
    wait_past(first_ms)
    assert f"{green}': found {NO_RIGHT}" in shop.expands()
    later_ms = shop.first_failure_ms
    assert later_ms > first_ms
    wait_past(later_ms)
    assert shop.watched().decision.outcome is Outcome.GAVE_UP


def test_a_quota_that_refuses_clients_of_today_lets_ours_through(guarded: EmbeddedBroker, shop: Attempted) -> None:
    """librdkafka uses old versions of the requests. Brokers carry these out, and only answer late (KIP-599)."""
    root = guarded.client_config("root")
    limit_mutations(root, per_second=0.01)
    spent = f"{shop.name}-spent"
    ClusterAdmin(KafkaConnection(root)).ensure_topic(spent, 1, 1, {})
    counts = itertools.count(2)
    is_refused = lambda: QUOTA_EXCEEDED in codes_of_growth(shop.connection, spent, next(counts))  # noqa: E731
    wait_until(is_refused, timeout=60, what="the quota to refuse a client of today")
    shop.grow(customers=8)
    assert shop.expands() == ""
    assert is_refused()


def limit_mutations(root: Mapping[str, str], *, per_second: float) -> None:
    """Set the quota of the user ``grower``."""
    of_user = AlterClientQuotasRequest.EntryData.EntityData(entity_type="user", entity_name="grower")
    rate = AlterClientQuotasRequest.EntryData.OpData(
        key="controller_mutation_rate", value=per_second, remove=False
    )
    entry = AlterClientQuotasRequest.EntryData(entity=[of_user], ops=[rate])
    client = admin_client(KafkaConnection(dict(root)))
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    try:
        answer = client._manager.run(client._send_request_to_controller, request, lambda _: (), True)
        assert [each.error_code for each in answer.entries] == [0]
    finally:
        client.close()


def codes_of_growth(connection: KafkaConnection, topic: str, count: int) -> set[int]:
    """Return the error codes for a request of the newest version, on a connection that is not throttled yet."""
    client = admin_client(connection)
    try:
        answer = client.create_partitions({topic: count}, raise_errors=False)
        return {each.error_code for each in answer.results}
    finally:
        client.close()
