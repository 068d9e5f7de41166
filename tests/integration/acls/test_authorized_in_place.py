"""An expansion in place with exactly the documented ACLs: each task of the DAG has its own role.

The application is live. It and its producers use the broker's own listener, which needs no permissions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.begin import begin
from kafka_rescale.operations.expansion.stages import expand_stage
from kafka_rescale.operations.preflight.permissions import permitted_state
from kafka_rescale.operations.preflight.preflight import preflight

from testbed.broker import EmbeddedBroker
from testbed.broker_security import BrokerSecurity
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.support.ordered import NAME
from tests.support.ordered_in_place import OrderedInPlace
from tests.support.secured import CANARY, Secured

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GROWN = 6


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker with an authorizer, and a user for each role."""
    security = BrokerSecurity(tmp_path / "certificates", {role.value: f"{role}-{CANARY}" for role in Role})
    with EmbeddedBroker(tmp_path / "broker", heap="512m", security=security) as running:
        yield running


def test_a_live_application_grows_with_exactly_the_documented_permissions(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = OrderedInPlace(tmp_path / "ordered", broker.internal_config["bootstrap.servers"])
    ordered.prepare()
    monkeypatch.setenv("LINKS", str(ordered.directory))
    given = Secured(broker, ordered.file)
    given.grant(given.acls)
    try:
        with ordered.at_work():
            assert ordered.run("start", NAME) == 0
            wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
            for acl in given.acls:
                assert_named(given, acl)
            grow(Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run"), given)
            ordered.stop_sending()
            wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
    finally:
        ordered.run("stop", NAME)
    assert ordered.wrong() == {}


def assert_named(given: Secured, acl: Acl) -> None:
    """Take a permission away, see that preflight names it, and give it back."""
    given.revoke(acl)
    missing = f"(role {acl.role}): found no {acl.operation} on {acl.pattern};"
    try:
        wait_until(lambda: missing in refused(given, acl.role), timeout=20, what=f"a refusal with {missing}")
    finally:
        given.grant([acl])


def refused(given: Secured, role: Role) -> str:
    """Return what is missing for a role, and for ``plan``."""
    connections = {each: given.connections[each] for each in (Role.PLAN, role)}
    try:
        permitted_state(given.application, given.topology, connections)
    except PreflightRefused as refusal:
        return "\n".join(map(str, refusal.findings))
    return ""


def grow(expansion: Expansion, given: Secured) -> None:
    """Run the tasks of the DAG in its order, each with its own role."""
    application, owner = expansion.application, expansion.owner
    admin = given.connections[Role.ADMIN]
    wait_until(lambda: not any(refused(given, role) for role in Role), timeout=20, what="no refusal")
    found = preflight(
        application,
        topology_of(application),
        given.connections[Role.PLAN],
        target=GROWN,
        owner=owner,
        now_ms=now_ms(),
        owner_is_finished=lambda _: True,
        others=given.connections,
    )
    assert found.plan is not None, found.messages
    begin(application, admin, found.plan, owner=owner, now_ms=now_ms(), owner_is_finished=lambda _: True)
    for stage in found.plan.stages:
        expand_stage(application, admin, owner=owner, stage=stage.index)
    expansion.connection = given.connections[Role.COPY]
    expansion.job("rehearse")
    moving = expansion.submit("move")
    run_cutover(application, admin, owner=owner)
    assert moving.wait(expansion.patience) == 0, expansion.log_of("move")
    expansion.connection = given.connections[Role.VERIFY]
    report = expansion.verify()
    assert report["passed"], report
    expansion.connection = admin
    expansion.finish()
    state = expansion.state()
    assert state.generations is not None
    assert state.generations.partitions == GROWN
