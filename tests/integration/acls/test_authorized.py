"""With exactly the documented ACLs, every phase works. If any one of them is missing, preflight names it.

The tests use a real broker with the KRaft authorizer. One role logs in by certificate, the others by SCRAM over
TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_rescale.core.acls.acls import Acl, command
from kafka_rescale.core.acls.needed import DISK_SPACE, needed_acls
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import InvalidInput, PreflightRefused
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.roles import Role
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.control.lag_gate_record import GateRecord
from kafka_rescale.kafka.copy import in_flight
from kafka_rescale.kafka.copy.bridging import prepare
from kafka_rescale.kafka.copy.fences import read_fences
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import fence, restart, restart_stale
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.misrouted import look_for_misrouted
from kafka_rescale.kafka.reading.remaining import with_records
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.quiesce import prove_gone
from kafka_rescale.operations.expansion.begin import begin
from kafka_rescale.operations.expansion.compaction import hold_compaction, release_compaction
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.stages import expand_stage, lags
from kafka_rescale.operations.preflight.permissions import permitted_state
from kafka_rescale.operations.preflight.preflight import Preflight, preflight
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.processes import wait_until
from tests.support.secured import AFTER, BEFORE, CHANGELOG, REPARTITION, SHOP, Secured, secured

pytestmark = pytest.mark.integration

OWNER = "expand_shop/run-1"
DECLARED = Application.model_validate(SHOP)
NEEDED = needed_acls(DECLARED, topology_of(DECLARED))


def name_of(acl: Acl) -> str:
    return f"{acl.role}-{acl.operation}-{acl.pattern.kind}-{acl.pattern.name}"


QUICK = {(acl.role, acl.pattern.kind): acl for acl in reversed(NEEDED)}.values()
"""One ACL for each role and kind of pattern. The tests of all other ACLs together take a minute and a half."""

ONE_BY_ONE = [
    pytest.param(acl, id=name_of(acl), marks=[] if acl in QUICK else [pytest.mark.slow]) for acl in NEEDED
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The shop with exactly the documented ACLs. There was no expansion yet, so there is no control topic."""
    with secured(tmp_path_factory.mktemp("secured")) as given:
        given.grant(given.acls)
        yield given


def refused(shop: Secured, role: Role) -> list[str]:
    """Return the permissions that preflight finds missing, for a role and for ``plan``."""
    connections = {each: shop.connections[each] for each in (Role.PLAN, role)}
    try:
        permitted_state(shop.application, shop.topology, connections)
    except PreflightRefused as refusal:
        return [str(finding) for finding in refusal.findings]
    return []


@pytest.mark.parametrize("acl", ONE_BY_ONE)
def test_preflight_names_the_one_that_is_missing(shop: Secured, acl: Acl) -> None:
    principal = shop.connections[acl.role].principal
    expected = (
        f"permissions of {principal} (role {acl.role}): found no {acl.operation} on {acl.pattern}; expected the "
        "ACLs that `python -m kafka_rescale acls FILE` prints. Grant it: "
        f"{command(principal, [acl], shop.connections[Role.PLAN].servers)}"
    )
    shop.revoke(acl)
    try:
        # A broker applies a change, and the change before it, a moment after it has been answered.
        wait_until(lambda: refused(shop, acl.role) == [expected], timeout=20, what=f"a refusal with {expected}")
    finally:
        shop.grant([acl])


def test_with_all_of_them_it_refuses_nothing(shop: Secured) -> None:
    wait_until(lambda: not any(refused(shop, role) for role in Role), timeout=20, what="no refusal")


def test_free_space_is_told_only_with_the_permission_for_it(shop: Secured) -> None:
    """Without the permission, nothing is refused or stopped. Preflight and the copy say that it is unknown."""

    def told() -> list[str]:
        return [message for message in looked(shop).messages if message.startswith("Disk: ")]

    assert told() == [
        "Disk: unknown, and not checked: broker 1 (the role plan has no Describe on the cluster). "
        "`python -m kafka_rescale acls FILE` prints the permission."
    ]

    def untold() -> dict[int, str]:
        return dict(read_disks(shop.connections[Role.COPY], {"orders": 1}, Role.COPY).untold)

    assert untold() == {1: "the role copy has no Describe on the cluster"}
    shop.grant(DISK_SPACE)
    try:
        wait_until(
            lambda: [line.startswith("Disk: at most ") for line in told()] == [True],
            timeout=20,
            what="the figures of the broker's disk",
        )
        wait_until(lambda: untold() == {}, timeout=20, what="the same figures for the copy")
    finally:
        for acl in DISK_SPACE:
            shop.revoke(acl)


def test_nobody_else_may_do_anything(shop: Secured) -> None:
    stranger = ClusterAdmin(KafkaConnection(shop.broker.certified_config("stranger")))
    assert stranger.list_topics() == set()
    with pytest.raises(InvalidInput, match="TOPIC_AUTHORIZATION_FAILED"):
        stranger.end_offsets(["orders"])


def test_asking_for_rights_disturbs_no_transaction(shop: Secured) -> None:
    connection = shop.connections[Role.ADMIN]
    ControlTopic(connection, "shop").ensure()
    writer = TransactionalWriter(connection, "kafka-rescale-shop")
    for number in range(2):
        writer.write(TOPIC, {"shop/rights": str(number).encode()})
        permitted_state(shop.application, shop.topology, {**shop.connections, Role.PLAN: connection})
    writer.write(TOPIC, {"shop/rights": None})


def test_each_phase_works_with_exactly_the_documented_permissions(shop: Secured) -> None:
    plan = planned(shop)
    committed_by_blue(shop)
    journal = made(shop, plan)
    copied(shop, plan)
    proven(shop, plan)
    journal = cut_over(shop, plan)
    verified(shop, journal)
    retired(shop, journal)


def looked(shop: Secured, **more: Any) -> Preflight:
    """Return what ``preflight`` finds for an expansion that has not begun."""
    return preflight(
        shop.application,
        shop.topology,
        shop.connections[Role.PLAN],
        target=AFTER,
        owner=OWNER,
        now_ms=now_ms(),
        owner_is_finished=lambda _: False,
        **more,
    )


def planned(shop: Secured) -> Plan:
    """Run ``preflight`` with the connections of all roles, and return the plan."""
    found = looked(shop, others=shop.connections)
    assert found.plan is not None
    assert not any("could not be sampled" in message for message in found.messages)
    return found.plan


def committed_by_blue(shop: Secured) -> None:
    """Commit the offsets of an application that has processed its inputs, and half of its repartition topic."""
    consumer = Consumer({**shop.broker.internal_config, "group.id": "shop"})
    ends = ClusterAdmin(KafkaConnection(shop.broker.internal_config)).end_offsets(
        ["orders", "customers", "payments", REPARTITION]
    )
    offsets = [
        TopicPartition(topic, p, end // 2 if topic == REPARTITION else end)
        for topic, of in ends.items()
        for p, end in of.items()
    ]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def made(shop: Secured, plan: Plan) -> Journal:
    """Do what ``plan``, ``expand`` and ``prewarm`` do: begin, make topics, fence, hold compaction."""
    connection = shop.connections[Role.ADMIN]
    journal = begin(
        shop.application, connection, plan, owner=OWNER, now_ms=now_ms(), owner_is_finished=lambda _: False
    )
    for stage in plan.stages:
        expand_stage(shop.application, connection, owner=OWNER, stage=stage.index)
    fence(connection, plan, plan.moves)
    rescale = Rescale.open(shop.application, connection, OWNER)
    return hold_compaction(rescale, journal)


def copied(shop: Secured, plan: Plan) -> None:
    """Do what ``restore``, ``warm_up``, ``catch_up``, ``bridge`` and the gates do, and empty an old copy."""
    connection = shop.connections[Role.COPY]
    job = Job("restore", Arguments("shop", OWNER, 1, stage=1), connection)
    assert job.journal().plan == plan
    job.put("running")
    restart_stale(connection, plan, plan.changelogs, now_ms(), attempt=1)
    for move in plan.changelogs:
        restart(connection, plan, move, Mark(as_of_ms=now_ms(), attempt=1))
    progress = CopyProgress(connection, plan, plan.changelogs)
    run(CopyWorker(connection, plan, units_of(plan.changelogs)), progress.ends())
    assert progress.read().lag == 0
    progress.close()
    in_flight.prepare(connection, plan, plan.repartitions, 1)
    carrier = CopyWorker(connection, plan, units_of(plan.repartitions))
    carrier.announce("session")
    ends = ClusterAdmin(connection).end_offsets([REPARTITION])[REPARTITION]
    starts = {(REPARTITION, p): end // 2 for p, end in ends.items()}
    run(carrier, {(REPARTITION, p): end for p, end in ends.items()}, starts)
    for move in plan.repartitions:
        in_flight.prove(connection, move, {p: (end // 2, end) for p, end in ends.items()})
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    ends = ClusterAdmin(connection).end_offsets(["payments"])["payments"]
    bridge = CopyWorker(connection, plan, units_of(plan.bridges), group=plan.bridge_group)
    run(bridge, {("payments", p): end for p, end in ends.items()}, {("payments", p): 0 for p in ends})
    with JournalFollower(connection, "shop") as follower:
        assert follower.first() is not None
    job.put("done")
    assert all(lag.position == lag.end for lag in lags(connection, plan, None))
    for gate in ("lag_gate/1", "gate_all"):
        GateRecord(connection, "shop", gate, OWNER).add(lags(connection, plan, None), 0, "open")
    results = ControlTopic(shop.connections[Role.PLAN], "shop").read().results
    assert {job: results[job].state for job in ("restore/1", "lag_gate/1", "gate_all")} == {
        "restore/1": "done",
        "lag_gate/1": "open",
        "gate_all": "open",
    }


def run(worker: CopyWorker, ends: dict[Any, int], starts: dict[Any, int] | None = None) -> None:
    """Copy up to the given ends."""
    try:
        worker.begin(starts)
        worker.run_to(ends, now_ms(), exactly=True)
    finally:
        worker.close()


def proven(shop: Secured, plan: Plan) -> None:
    """Do what ``prove`` does by librdkafka, and leave its result."""
    connection = shop.connections[Role.VERIFY]
    fences = read_fences(connection, plan)
    since = {p: 0 for p in fences.blue_ends[CHANGELOG]}
    assert later_keys(connection, CHANGELOG, since, {b"no such key"}) == set()
    job = Job("prove", Arguments("shop", OWNER, 1), connection)
    found = Proof(application="shop", plan=plan.fingerprint, attempt=1, seconds=0, fences=fences)
    job.put("done", records={Concern.PROOF: found})
    assert is_of(ControlTopic(connection, "shop").read().proof, job.journal())


def cut_over(shop: Secured, plan: Plan) -> Journal:
    """Send the requests of ``cutover`` to the brokers, in its order, without an application."""
    rescale = Rescale.open(shop.application, shop.connections[Role.ADMIN], OWNER)
    admin = rescale.admin
    ends = admin.end_offsets(["customers"])["customers"]
    list(with_records(rescale.connection, {("customers", p): (0, end) for p, end in ends.items()}))
    captured = prove_gone(rescale, plan, 60)
    ends = admin.end_offsets([m.target for m in plan.moves])
    start = {"orders": captured.committed["orders"], "customers": captured.committed["customers"]}
    start |= {m.target: dict.fromkeys(range(AFTER), 0) for m in (*plan.repartitions, *plan.bridges)}
    for phase in (Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED):
        rescale.advance(phase, captured=captured, green_ends=ends, green_start=start)
    for growth in plan.inputs:
        if growth.grows:
            assert admin.grow_topic(growth.topic, growth.target)
    assert admin.remove_members(plan.green) == ()
    admin.commit(plan.green, start)
    return rescale.advance(Phase.STARTED)


def verified(shop: Secured, journal: Journal) -> None:
    """Do what ``verify`` does by librdkafka. Another test covers the part of Spark."""
    connection = shop.connections[Role.VERIFY]
    admin = ClusterAdmin(connection)
    writer = TransactionalWriter(connection, f"kafka-rescale-shop/{Concern.REPORT}")
    found = ControlTopic(connection, "shop").read().journal
    assert found is not None
    assert found.phase is Phase.STARTED
    assert admin.committed(journal.plan.green)["customers"]
    assert [report.misrouted for report in look_for_misrouted(connection, journal)] == [0]
    moved = [m.target for m in journal.plan.changelogs]
    assert admin.begin_offsets([CHANGELOG, *moved]).keys() == {CHANGELOG, *moved}
    writer.write(TOPIC, {f"shop/{Concern.REPORT}": b'{"passed": true}'})


def retired(shop: Secured, journal: Journal) -> None:
    """Do what ``callback`` and ``retire`` do: release compaction, and delete blue's topics and the groups."""
    rescale = Rescale.open(shop.application, shop.connections[Role.ADMIN], OWNER)
    release_compaction(rescale, journal)
    rescale.admin.delete_topics([m.source for m in journal.plan.moves])
    for group in (journal.plan.blue, journal.plan.copy_group, f"{journal.plan.green}-gate"):
        rescale.admin.delete_group(group)
    assert rescale.admin.describe_topics([CHANGELOG, REPARTITION]) == {}
    assert rescale.admin.describe_topics(["customers"])["customers"].partitions > BEFORE


def test_what_a_role_does_not_need_it_may_not_do(shop: Secured) -> None:
    """The long Spark jobs can't change inputs and outputs, and only ``admin`` can make or grow topics."""
    for role in (Role.PLAN, Role.COPY, Role.VERIFY):
        admin = ClusterAdmin(shop.connections[role])
        with pytest.raises(InvalidInput, match="AUTHORIZATION_FAILED"):
            admin.ensure_topic("shop-new", 1, 1, {})
        with pytest.raises(InvalidInput, match="AUTHORIZATION_FAILED"):
            admin.grow_topic("orders", 2 * AFTER)
