"""A real Airflow calls ``onPartitionExpansion`` (KIP-878) once, when a live application's topology is stable.

The worker is killed between the call and the record of its end. A function that takes the expansion's token is
called again with it. For any other function, a person is asked.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.expansion.callback import expansion_id
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.demo import await_live, environment
from testbed.flights_stack import FlightsStack
from tests.support.airflow import live_callbacks
from tests.support.airflow.autoscaled import EXPANDED, await_expanded, connection_of, options_of, scaled
from tests.support.airflow.live_callbacks import calls_in

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND, SETTING, MODULE = "expand_flights", "on_partition_expansion", live_callbacks.__name__


def test_a_growth_is_told_when_the_topology_is_stable_and_after_a_kill_with_the_same_token(tmp_path: Path) -> None:
    options, file = options_of(tmp_path, "exactly_once_v2"), tmp_path / "calls"
    applications = scaled(tmp_path / "applications", {SETTING: f"{MODULE}:note_and_die_once"})
    found = live_callbacks.settings(file, "flights")
    with environment(options, applications, settings=found) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        ClusterAdmin(connection_of(stack)).grow_topic("flights", 8)
        await_expanded(stack, airflow.client)
        journal = journal_of(stack)
    first, second = calls_in(file)
    assert first.process != second.process
    assert [call.has_effect for call in (first, second)] == [True, False]
    for call in (first, second):
        assert (call.old, call.new, call.expansion_id) == (4, 8, expansion_id(journal.plan))
        assert (call.phase, call.group) == (Phase.VERIFIED, "Stable")
        assert {move.target for move in journal.plan.moves} | {"flights", "planes"} <= call.counts.keys()
        assert set(call.counts.values()) == {8}
    assert journal.phase is Phase.COMPLETE


def test_a_function_that_can_not_tell_is_called_once_and_a_person_ends_the_run(tmp_path: Path) -> None:
    options, file = options_of(tmp_path, "exactly_once_v2"), tmp_path / "calls"
    applications = scaled(tmp_path / "applications", {SETTING: f"{MODULE}:note_and_die"})
    declared = applications / "flights.yaml"
    found = live_callbacks.settings(file, "flights")
    with environment(options, applications, settings=found) as (stack, airflow):
        await_live(stack, options)
        run = airflow.client.trigger(EXPAND, {"target": 8, "dry_run": False, "approve_cutover": False})
        assert airflow.client.wait_for_run(EXPAND, run, timeout=EXPANDED) == "failed"
        states = airflow.client.task_states(EXPAND, run)
        assert (states["verify"], states["callback"]) == ("success", "failed")
        said = airflow.client.log(EXPAND, run, "callback")
        assert f"a call of {MODULE}:note_and_die that has begun, and no record of its end" in said
        assert stack.run("status", "flights-g2") == 0, "the new generation works on meanwhile"
        assert journal_of(stack).phase is Phase.VERIFIED

        fields = yaml.safe_load(declared.read_text())
        del fields[SETTING]
        declared.write_text(yaml.safe_dump(fields, sort_keys=False))
        airflow.client.clear(EXPAND, run, ["callback"], downstream=False)
        assert airflow.client.wait_for_task(EXPAND, run, "callback", timeout=EXPANDED) == "success"
        assert journal_of(stack).phase is Phase.COMPLETE
        stack.finish_replay()
        stack.await_equal("flights-g2")
    (call,) = calls_in(file)
    assert (call.old, call.new, call.phase, call.group) == (4, 8, Phase.VERIFIED, "Stable")


def journal_of(stack: FlightsStack) -> Journal:
    """The journal in the control topic."""
    journal = ControlTopic(connection_of(stack), "flights").read().journal
    assert journal is not None
    return journal
