"""KIP-878 on a real broker: inputs grow, the watch looks, and the control topic keeps what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.autoscaling.decision import Outcome, RunState
from kafka_rescale.core.control.autoscaling import FOLLOW_UP_MS, Autoscaling
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, PreflightRefused
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.application.load import load_application

from tests.support.small_application import topic_configs, topology_text, write
from tests.support.small_cluster import make, picture, run_preflight
from tests.support.watched_shop import MINUTE, ON, Shop

pytestmark = pytest.mark.integration


def rekeyed(name: str, **fields: Any) -> dict[str, Any]:
    """Fields of an application that reads only its orders, and re-keys them before any state."""
    text = topology_text(name)
    for line in (
        f"    Source: customers-source (topics: [{name}-customers])\n      --> customers-table\n",
        "    Processor: customers-table (stores: [customers])\n      --> none\n      <-- customers-source\n",
    ):
        assert line in text
        text = text.replace(line, "")
    return {
        "topology": text,
        "inputs": [{"topic": f"{name}-orders", "policy": "unkeyed"}],
        **fields,
    }


@pytest.fixture
def shop(client: Mapping[str, str], unique: str, tmp_path: Path) -> Shop:
    """The application with 4 partitions of everything."""
    make(client, unique)
    return Shop(client, unique, tmp_path)


def test_counts_that_follow_from_the_inputs_are_left_alone(shop: Shop) -> None:
    before = picture(shop.client, shop.name)
    assert shop.outcome(**ON) is Outcome.IN_LINE
    assert shop.outcome(**ON) is Outcome.IN_LINE
    after = picture(shop.client, shop.name)
    assert shop.remembered() == Autoscaling(inputs=dict.fromkeys(shop.inputs, 4))
    assert {**after, "remembered": before["remembered"], "names": before["names"]} == before


def test_switched_off_it_is_said_once_across_runs_and_nothing_is_triggered(shop: Shop) -> None:
    shop.grow(customers=8)
    first = shop.look().decision
    assert f"Trigger expand_{shop.name} with target 8" in str(first.error)
    assert f"{shop.name}-customers has 8 partitions, 4 known" in str(first.error)
    for _ in range(2):
        again = shop.look().decision
        assert (again.outcome, again.error, again.trigger) == (Outcome.ERROR, None, None)


class TestNobodyWritesIntoTheNewPartitions:
    """KIP-878: "they should wait for this before sending any records to the new input topic partitions"."""

    def test_what_an_earlier_look_has_recorded_tells_the_growth(self, shop: Shop) -> None:
        fields = {**ON, **rekeyed(shop.name)}
        assert shop.outcome(**fields) is Outcome.IN_LINE
        shop.grow(orders=8)
        assert shop.triggered(**fields) == f"expand_{shop.name}/autoscaling__1__to_8"
        passed = run_preflight(shop.client, shop.directory, shop.name, target=8, **fields)
        assert passed.plan is not None
        (orders,) = passed.plan.inputs
        assert (orders.earlier, orders.current, orders.grows) == (4, 8, False)
        assert {(m.source_partitions, m.target_partitions) for m in passed.plan.moves} == {(4, 8)}

    def test_switched_off_it_is_said_once(self, shop: Shop) -> None:
        fields = rekeyed(shop.name)
        assert shop.outcome(**fields) is Outcome.IN_LINE
        shop.grow(orders=8)
        assert f"{shop.name}-orders has 8 partitions, 4 known" in str(shop.look(**fields).decision.error)
        assert shop.look(**fields).decision.error is None
        # When it is switched on later, it uses the counts that were recorded meanwhile.
        assert shop.triggered(**ON, **fields).endswith("/autoscaling__1__to_8")

    def test_a_first_look_at_it_says_what_can_not_be_known_and_the_file_tells_it(self, shop: Shop) -> None:
        shop.grow(orders=8)
        first = shop.look(**ON, **rekeyed(shop.name)).decision
        assert "`count: derived`" in str(first.error)
        with pytest.raises(PreflightRefused, match="can't be undone, and need not be: declare `count: derived`"):
            run_preflight(shop.client, shop.directory, shop.name, target=8, **rekeyed(shop.name))
        told = rekeyed(shop.name, repartitions=[{"name": "by-customer", "count": "derived"}])
        assert shop.triggered(**ON, **told).endswith("/autoscaling__1__to_8")
        passed = run_preflight(shop.client, shop.directory, shop.name, target=8, **told)
        assert passed.plan is not None
        assert passed.plan.inputs[0].earlier == 4


def test_an_application_that_is_down_while_a_bound_holds_the_expansion_is_told_once(shop: Shop) -> None:
    shop.has_processed(1)
    shop.grow(customers=8)
    held: dict[str, Any] = {**ON, "autoscaling_bounds": {"maximum_lag": 0}}
    first, second = (shop.look(**held).decision for _ in range(2))
    assert f"application {shop.name}, which is down: found autoscaling_bounds are in the way" in str(first.error)
    assert second.error is None
    assert {first.outcome, second.outcome} == {Outcome.HELD}
    assert shop.triggered(**ON).endswith("/autoscaling__1__to_8")


def test_switched_on_the_expansion_is_asked_for_by_one_name_and_waited_for(shop: Shop) -> None:
    shop.grow(customers=8)
    assert shop.triggered(**ON) == f"expand_{shop.name}/autoscaling__1__to_8"
    assert shop.outcome(**ON) is Outcome.WAITING
    remembered = shop.remembered()
    assert remembered is not None
    assert (remembered.target, remembered.attempts, remembered.first_failure_ms) == (8, 1, 0)
    state = shop.control.read()
    status = status_view(load_application(write(shop.directory, shop.name)), state, ()).text
    assert f"autoscaling: trigger at 1970-01-01T00:18:40+00:00: expand_{shop.name} to 8 partitions" in status


def test_failures_are_retried_until_nothing_has_succeeded_for_the_whole_timeout(shop: Shop) -> None:
    shop.grow(customers=8)
    first = shop.triggered(**ON)
    shop.runs[first] = RunState.FAILED
    second = shop.triggered(**ON, later_ms=60 * MINUTE)
    assert second.endswith("/autoscaling__2__to_8")
    shop.runs[second] = RunState.FAILED
    assert shop.outcome(**ON, later_ms=15 * MINUTE) is Outcome.GAVE_UP
    assert shop.outcome(**ON) is Outcome.GAVE_UP
    remembered = shop.remembered()
    assert remembered is not None
    assert (remembered.failures, remembered.attempts) == (1, 2)


def test_partitions_that_an_attempt_has_made_are_a_success_that_resets_the_timeout(shop: Shop) -> None:
    shop.grow(customers=8)
    first = shop.triggered(**ON)
    shop.runs[first] = RunState.FAILED
    second = shop.triggered(**ON)
    plan = shop.begins(phase=Phase.ROLLED_BACK).plan
    ClusterAdmin(shop.connection).ensure_topic(plan.moves[0].target, 8, 1, {})
    shop.runs[second] = RunState.FAILED
    third = shop.triggered(**ON, later_ms=15 * MINUTE)
    shop.runs[third] = RunState.FAILED
    assert shop.outcome(**ON, later_ms=15 * MINUTE) is Outcome.GAVE_UP


def test_an_over_partitioned_internal_topic_is_an_error_on_or_off(shop: Shop) -> None:
    shop.grow(visits_changelog=6)
    for fields in ({}, ON):
        decision = shop.look(**fields).decision
        assert decision.outcome is Outcome.ERROR
        assert f"{shop.name}-visits-changelog with 6 partitions instead of 4" in decision.reason
    remembered = shop.remembered()
    assert remembered is not None
    assert remembered.by.endswith("/1")


def has_expanded(shop: Shop, run: str, target: int) -> None:
    """Leave what an expansion leaves: a generation, and topics and inputs that have the target's count."""
    admin = ClusterAdmin(shop.connection)
    for topic, configs in topic_configs(shop.name).items():
        name = topic.replace(f"{shop.name}-", f"{shop.name}-g2-", 1)
        if topic.endswith(("-changelog", "-repartition")):
            admin.ensure_topic(name, target, 1, configs)
    for topic, found in admin.describe_topics(shop.inputs).items():
        if found.partitions < target:
            admin.grow_topic(topic, target)
    shop.control.update(lambda _: {Concern.GENERATIONS: Generations(running=f"{shop.name}-g2", generation=2)})
    shop.runs[run] = RunState.SUCCESS


def test_a_success_is_looked_at_once_more_when_brokers_know_of_it(shop: Shop) -> None:
    shop.grow(customers=8)
    has_expanded(shop, shop.triggered(**ON), 8)
    assert shop.outcome(**ON) is Outcome.FOLLOW_UP
    assert shop.outcome(**ON, later_ms=FOLLOW_UP_MS - 1) is Outcome.FOLLOW_UP
    last = shop.look(**ON, later_ms=1)
    assert last.decision.outcome is Outcome.IN_LINE
    assert "follow-up check" in last.decision.reason
    assert {(p.current, p.expected) for p in last.observed.parallelism} == {(8, 8)}


def test_an_input_that_grows_on_during_an_expansion_is_followed_by_another_one(shop: Shop) -> None:
    """KIP-878: "multiple rebalances may be triggered if these topics are expanded out of sync"."""
    shop.grow(customers=8)
    first = shop.triggered(**ON)
    shop.grow(customers=16)
    assert shop.outcome(**ON) is Outcome.WAITING, "its run has a plan for 8"
    has_expanded(shop, first, 8)
    assert shop.outcome(**ON) is Outcome.FOLLOW_UP
    assert shop.triggered(**ON) == f"expand_{shop.name}/autoscaling__2__to_16"
    remembered = shop.remembered()
    assert remembered is not None
    assert remembered.first_failure_ms == 0, "nothing has failed"


def test_bounds_hold_an_expansion_until_they_allow_it(shop: Shop) -> None:
    shop.grow(customers=8)
    behind = shop.look(**ON, autoscaling_bounds={"maximum_lag": 0})
    assert behind.decision.outcome is Outcome.HELD
    assert behind.observed.lag > 0
    too_far = shop.look(**ON, autoscaling_bounds={"maximum_partitions": 6})
    assert "at most 6 partitions" in str(too_far.decision.error)
    asked = shop.look(**ON, autoscaling_bounds={"approval_above": 6})
    assert asked.decision.trigger is not None
    assert asked.decision.trigger.approval


def test_an_expansion_that_a_person_has_begun_is_waited_for(shop: Shop) -> None:
    shop.grow(customers=8)
    shop.begins()
    assert shop.outcome(**ON) is Outcome.WAITING
    assert shop.remembered() is None


def test_an_application_that_a_shell_has_stopped_is_told_when_its_lease_has_expired(shop: Shop) -> None:
    shop.has_processed(1)
    shop.begins(phase=Phase.QUIESCED)
    lease = Lease(owner="shell/host/1", epoch=1, target=8, expires_at_ms=shop.now_ms + 3 * MINUTE)
    shop.control.update(lambda _: {Concern.LEASE: lease})
    assert shop.look().decision.error is None
    assert "which is down: found an expansion to 8 partitions is in progress" in str(shop.look().decision.error)
    assert shop.look().decision.error is None


def test_a_look_fences_no_expansion(shop: Shop) -> None:
    """The look writes to the control topic while another controller is between its own reading and writing."""
    shop.grow(customers=8)
    seen: list[Outcome] = []

    def change(state: ControlState) -> dict[str, Generations]:
        seen.append(shop.outcome(**ON))
        return {Concern.GENERATIONS: Generations(running=shop.name)}

    shop.control.update(change)
    assert seen == [Outcome.TRIGGER]
    state = shop.control.read()
    assert state.generations is not None
    assert state.autoscaling is not None


def test_of_two_looks_of_one_run_only_the_newer_attempt_decides(shop: Shop) -> None:
    shop.grow(customers=8)
    shop.look(**ON, attempt=2)
    shop.looks -= 1
    with pytest.raises(Fenced):
        shop.look(attempt=1)
