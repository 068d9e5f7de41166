"""Earlier generations are retired with exactly the documented ACLs, though the application now grows in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.acls.acls import Acl
from kafka_rescale.core.acls.needed import retirement_acls
from kafka_rescale.core.control.generations import promoted_generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.expansion.retire import retire
from kafka_rescale.operations.preflight.permissions import lacking_to_retire, permitted_state

from testbed.processes import wait_until
from tests.support.secured import AFTER, BEFORE, CHANGELOG, REPARTITION, SHOP, TOPICS, Secured, secured

pytestmark = pytest.mark.integration

LEFT = sorted([CHANGELOG, REPARTITION])
BESIDE = {
    "inputs": [i for i in SHOP["inputs"] if i["policy"] != "repartitioned"],
    "subtopologies": [
        {**s, "sources": [t for t in s["sources"] if t != "payments"]} for s in SHOP["subtopologies"]
    ],
    "lifecycle": {**SHOP["lifecycle"], "start": "true {application_id}"},
}


def expanded(shop: Secured) -> None:
    """Leave what an expansion to a second generation leaves.

    The application shall now grow in place from there.
    """
    beside = shop.application.model_copy(update={"mode": "blue_green"})
    counts = dict.fromkeys(TOPICS, BEFORE)
    plan = build_plan(beside, shop.topology, blue="shop", generation=2, current=counts, target=AFTER)
    journal = Journal(plan=plan, phase=Phase.COMPLETE)
    connection = KafkaConnection(shop.broker.internal_config)
    for move in plan.moves:
        ClusterAdmin(connection).ensure_topic(move.target, move.target_partitions, 1, {})
    ClusterAdmin(connection).commit("shop", {"orders": {0: 1}})
    ControlTopic(connection, "shop").update(
        lambda _: {Concern.JOURNAL: journal, Concern.GENERATIONS: promoted_generations(journal)}
    )


def test_what_only_retire_needs_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    with secured(tmp_path, mode="in_place", **BESIDE) as shop:
        shop.grant(shop.acls)
        extra = retirement_acls(shop.application, shop.topology)

        def lacking() -> str:
            state = permitted_state(shop.application, shop.topology, shop.connections)
            return "\n".join(lacking_to_retire(shop.application, shop.topology, shop.connections, state))

        def named(acl: Acl) -> bool:
            return f"found no Delete on {acl.pattern};" in lacking()

        wait_until(lambda: _is_permitted(shop), timeout=20, what="no refusal")
        assert lacking() == ""
        expanded(shop)
        wait_until(lambda: all(map(named, extra)), timeout=20, what="every one that is missing")
        assert "retire of shop" in lacking()
        with pytest.raises(InvalidInput, match=r"AuthorizationFailed.* Grant DELETE on the group"):
            retire(shop.application, shop.connections[Role.ADMIN], owner="test")
        shop.grant(extra)
        wait_until(lambda: lacking() == "", timeout=20, what="none that is missing")
        assert retire(shop.application, shop.connections[Role.ADMIN], owner="test") == {"shop": LEFT}
        admin = ClusterAdmin(KafkaConnection(shop.broker.internal_config))
        assert admin.describe_topics(LEFT) == {}
        assert admin.committed("shop") == {}
        for acl in extra:
            shop.revoke(acl)
        assert lacking() == ""


def _is_permitted(shop: Secured) -> bool:
    try:
        permitted_state(shop.application, shop.topology, shop.connections)
    except Exception:
        return False
    return True
