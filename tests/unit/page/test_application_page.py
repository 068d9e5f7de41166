"""What the page shows of an application in each of its situations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.downtime import PARTS, downtime
from kafka_rescale.core.page.carried import carried_inputs
from kafka_rescale.core.page.copy_estimate import Work, work_of
from kafka_rescale.core.page.health import Level, State
from kafka_rescale.core.page.page import ApplicationPage
from kafka_rescale.core.page.topology_graph import Node, NodeKind, topology_graph
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.key_distribution import key_distributions, skew
from kafka_rescale.core.verify.report_text import render
from kafka_rescale.operations.application.load import load_application, topology_of

from tests.support.page.page_contents import (
    NOW_MS,
    RUN,
    TIMINGS,
    World,
    complete,
    control,
    copying,
    paused,
    proven,
    report,
    waiting,
)
from tests.support.plans import in_place_plan, stateless_plan
from tests.unit.plan.test_repartitioned import ORDERED
from tests.unit.plan.test_repartitioned import plan as repartitioned_plan

ROOT = Path(__file__).resolve().parents[3]


def test_it_goes_to_json_and_back() -> None:
    page = complete("orders").page()
    assert ApplicationPage.model_validate_json(page.model_dump_json()) == page


def test_what_has_ended_stays_in_the_table_of_earlier_expansions() -> None:
    table = complete("orders").page().history
    (row,) = table.rows
    shown = dict(zip(table.header, row, strict=True))
    assert (shown["partitions"], shown["outcome"], shown["took"]) == ("4 → 8", "complete", "90.0 s")
    assert copying("orders").page().history.rows == ()


def test_an_application_that_was_never_rescaled_shows_its_own_counts() -> None:
    page = World("orders", current=6).page()
    assert (page.summary.running, page.summary.generation, page.summary.partitions) == ("orders", 1, 6)
    assert (page.summary.health.state, page.summary.health.level) == (State.RUNNING, Level.GOOD)
    assert page.summary.run.dag_id == "expand_orders"
    assert (page.jobs, page.lags, page.downtime.parts, page.proof) == ((), (), (), None)
    assert {node.then for node in page.graph.nodes} == {None}
    assert page.summary.lag == 6 * 7


def test_the_graph_leads_from_the_inputs_to_the_outputs_with_counts_of_now_and_then() -> None:
    graph = copying("orders").page().graph
    nodes = {node.id: node for node in graph.nodes}
    assert [nodes[a].column < nodes[b].column for a, b in graph.edges] == [True] * len(graph.edges)
    assert (nodes["orders"].kind, nodes["orders"].column) == ("input", 0)
    assert (nodes["totals"].kind, nodes["totals"].then) == ("output", None)
    assert (nodes["by-region-repartition"].now, nodes["by-region-repartition"].then) == (4, 8)
    stores = nodes["sub-topology 1"].stores
    assert [(s.name, s.now, s.then) for s in stores] == [("per-customer", 4, 8)]


def test_an_input_stands_right_before_its_first_reader() -> None:
    declared = load_application(ROOT / "applications" / "flights.yaml")
    graph = topology_graph(topology_of(declared), {})
    columns = {node.id: node.column for node in graph.nodes}
    assert columns["flights"] == 0
    assert columns["planes"] == columns["sub-topology 1"] - 1 == columns["by-aircraft-repartition"]
    assert all(columns[a] < columns[b] for a, b in graph.edges)


def test_the_stage_being_worked_on_is_the_one_of_the_newest_job() -> None:
    world = copying("orders")
    page = world.page()
    assert page.work == Work(step="restore", stages=(2,))
    (working,) = [node for node in page.graph.nodes if node.stage == 2]
    assert working.name == "sub-topology 1"


@pytest.mark.parametrize(
    ("phase", "step"),
    [
        (Phase.QUIESCING, "cutover"),
        (Phase.CAUGHT_UP, "cutover"),
        (Phase.PROMOTED, "start"),
        (Phase.STARTED, "verify"),
        (Phase.VERIFIED, "callback"),
        (Phase.COMPLETE, ""),
        (Phase.ROLLED_BACK, ""),
    ],
)
def test_after_the_warming_the_phase_says_what_is_done(phase: Phase, step: str) -> None:
    world = copying("orders")
    assert work_of(control(world, phase, list(world.control.results.values()))).step == step


@pytest.mark.parametrize("plan", [in_place_plan(), stateless_plan()])
def test_in_place_it_moves_what_moves_until_it_is_known_where_it_starts(plan: Plan) -> None:
    promoted = Journal(plan=plan, phase=Phase.PROMOTED)
    settled = promoted.model_copy(update={"green_start": {"orders": {0: 1}}})
    assert [work_of(ControlState(journal=j)).step for j in (promoted, settled)] == ["move", "start"]


def test_every_job_shows_its_progress_its_task_and_the_time_left() -> None:
    jobs = {job.job: job for job in copying("orders").page().jobs}
    assert list(jobs) == ["restore/1", "warm_up/1", "lag_gate/1", "restore/2"]
    running = jobs["restore/2"]
    assert (running.task_id, running.run) == ("stage_2_subtopology_1.restore", f"expand_orders/{RUN}")
    assert running.copied + running.lag == running.total == 4_000_000
    assert running.eta_seconds is not None
    assert jobs["restore/1"].eta_seconds is None


def test_what_is_done_is_done_and_what_is_not_known_is_not_nothing() -> None:
    """Records that arrive after a job has ended do not count as its lag."""
    world = copying("orders")
    behind = PartitionProgress(topic="t", partition=0, position=80, end=100, begin=0)
    results = [
        JobResult(job="restore/1", run="r", attempt=1, state="done", partitions=(behind,)),
        JobResult(job="warm_up/1", run="r", attempt=1, state="running", partitions=(behind,)),
        JobResult(job="restore/2", run="r", attempt=1, state="running"),
    ]
    page = replace(world, control=control(world, Phase.WARMING, results)).page()
    shown = {job.job: (job.share, job.lag, job.copied, job.total) for job in page.jobs}
    assert shown == {
        "restore/1": (1.0, 20, 80, 100),
        "warm_up/1": (0.8, 20, 80, 100),
        "restore/2": (None, None, None, None),
    }


def test_what_the_cutover_will_do_is_shown_until_it_is_promoted() -> None:
    warming = copying("orders").page().cutover
    (delta,) = (step for step in warming if step.does == "Copy the last delta, and compare it.")
    assert delta.names[0] == "orders-per-region-changelog -> orders-g2-per-region-changelog"
    assert paused("orders").page().cutover == warming
    assert World("orders").page().cutover == complete("orders").page().cutover == ()
    rolled_back = control(copying("orders"), Phase.ROLLED_BACK, [], rollback_reason="asked for")
    assert replace(copying("orders"), control=rolled_back).page().cutover == ()


def test_what_is_proven_is_shown_and_up_to_when() -> None:
    world = waiting("orders")
    assert world.page().proven is None
    found = report(world, passed=False).stores[0].model_copy(update={"excused": 0})

    shown = replace(world, control=proven(world)).page().proven
    wrong = replace(world, control=proven(world, found)).page().proven
    behind = proven(world).model_copy(update={"rolling_proof": {}})
    alone = replace(world, control=behind).page().proven

    assert shown is not None
    assert (shown.as_of_ms, shown.since_ms, shown.since_findings) == (NOW_MS - 120_000, NOW_MS - 5_000, 0)
    assert wrong is not None
    assert wrong.since_findings == sum(found.failures.values()) > 0
    assert alone is not None
    assert alone.since_ms is None, "unknown, not zero"


def test_what_the_switch_waits_for_is_told_on_the_page_and_by_status() -> None:
    world = waiting("orders")
    state, journal = world.control, world.control.journal
    assert journal is not None
    told_there = world.page().switch
    assert told_there.startswith("The switch waits: the next window begins Sun 27 Sep 02:00 UTC, in 5 d")
    assert "The copies are kept near until Mon 28 Sep 2026" in told_there
    shown = status_view(world.application, state, (), told_there)
    assert told_there in shown.text
    assert shown.data["switch"]["until_ms"] == NOW_MS + 604_800_000
    stopped = journal.model_copy(update={"phase": Phase.QUIESCING})
    begun = state.model_copy(update={"journal": stopped})
    assert replace(world, control=begun).page().switch == copying("orders").page().switch == ""
    assert status_view(world.application, begun, ()).data["switch"] is None


def test_the_pace_is_told_on_the_page_and_by_status_and_nothing_is_said_without_one() -> None:
    world = copying("orders")
    journal = world.control.journal
    assert journal is not None
    assert world.page().pace == ""
    assert status_view(world.application, world.control, ()).data["pace"] is None
    paused = Pace(plan=journal.plan.fingerprint, limit=5_000_000, paused=Instruction(by="ada", at_ms=NOW_MS))
    state = world.control.model_copy(update={"pace": paused})
    told = replace(world, control=state).page().pace
    assert told.startswith("The copy is paused by ada since ")
    assert told.endswith("The pace: at most 5.0 MB/s: the application file.")
    shown = status_view(world.application, state, ())
    assert told in shown.text
    assert shown.data["pace"]["limit"] == 5_000_000


def test_a_bridge_that_waits_for_the_promotion_holds_no_gate_and_is_not_what_is_looked_at() -> None:
    world = copying("orders")
    old = [PartitionProgress(topic="orders", partition=p, position=0, end=900_000, begin=0) for p in range(4)]
    # The bridge reads its ends every few seconds, so its reading is the newest.
    waiting = LagHistory().observed(old, NOW_MS - 2_000, None).observed(old, NOW_MS, None)
    bridge = JobResult(job="bridge", run="r", attempt=1, state="ready", partitions=tuple(old), lags=waiting)
    results = [*world.control.results.values(), bridge]
    page = replace(world, control=control(world, Phase.WARMING, results)).page()
    assert "bridge" not in {each.job for each in page.lags}
    assert page.measured_by == "restore/2"
    assert not page.is_gated, "no gate waits for a restore"
    (shown,) = [job for job in page.jobs if job.job == "bridge"]
    assert (shown.share, shown.lag, shown.eta_seconds, shown.has_pace) == (None, None, None, False)
    assert shown.detail == "waits for the promotion"

    promoted = replace(world, control=control(world, Phase.PROMOTED, results)).page()
    assert (promoted.measured_by, promoted.is_gated) == ("bridge", False)
    (carrying,) = [job for job in promoted.jobs if job.job == "bridge"]
    assert (carrying.share, carrying.lag) == (0.0, 4 * 900_000)


def test_a_gate_measures_what_can_hold_it() -> None:
    world = copying("orders")
    at = [PartitionProgress(topic="t", partition=p, position=5, end=9) for p in range(4)]
    gate = JobResult(
        job="gate_all",
        run="r",
        attempt=1,
        state="holding",
        partitions=tuple(at),
        lags=LagHistory().observed(at, NOW_MS, 3),
    )
    page = replace(world, control=control(world, Phase.WARMING, [*world.control.results.values(), gate])).page()
    assert (page.measured_by, page.is_gated) == ("gate_all", True)


def test_a_proof_at_work_shows_how_far_it_is_and_measures_no_lag() -> None:
    world = copying("orders")
    ends = [PartitionProgress(topic="t", partition=p, position=0, end=1_000, begin=0) for p in range(4)]
    read = [p.model_copy(update={"position": 250, "records": 250}) for p in ends]
    pace = LagHistory().observed(ends, NOW_MS - 10_000, None).observed(read, NOW_MS, None)
    proof = JobResult(
        job="prove", run="r", attempt=1, state="running", partitions=tuple(read), lags=pace, detail="told"
    )
    ready = JobResult(job="catch_up", run="r", attempt=1, state="ready")
    page = replace(world, control=control(world, Phase.WARMING, [ready, proof])).page()
    shown = page.jobs[-1]
    assert (shown.task_id, shown.share, shown.lag, shown.detail) == ("prove", 0.25, 3_000, "told")
    assert (shown.eta_seconds, shown.has_pace) == (None, False), "what is read tells no time"
    assert page.work == Work(step="prove", stages=(1, 2, 3))
    assert (page.measured_by, page.lags) == (None, ())
    known = proof.model_copy(update={"seconds_left": 45.0})
    (told,) = replace(world, control=control(world, Phase.WARMING, [known])).page().jobs
    assert told.eta_seconds == 45.0


class TestBridgedInputs:
    """The topology names an input as the file does. The journal has the topic that is read, and the bridge."""

    PLAN = repartitioned_plan(4, 6)

    def graph(self, phase: Phase, **known: Any) -> dict[str, Node]:
        state = ControlState(journal=Journal(plan=self.PLAN, phase=phase), **known)
        topology = topology_of(Application.model_validate(ORDERED))
        found = topology_graph(topology, {}, None, carried_inputs(state, topology.inputs))
        self.edges = found.edges
        assert min(node.column for node in found.nodes) == 0
        return {node.id: node for node in found.nodes}

    def test_before_the_promotion_the_new_topic_stands_behind_the_old_one(self) -> None:
        nodes = self.graph(Phase.WARMING)
        assert nodes["orders"].name == "orders"
        assert (nodes["bridge orders-p6"].kind, nodes["bridge orders-p6"].now) == (NodeKind.BRIDGED, 6)
        assert ("orders", "bridge orders-p6") in self.edges

    def test_after_it_the_input_is_the_new_topic_and_the_old_one_stands_before_it(self) -> None:
        running = Generations(running="g", generation=2, partitions=6, inputs={"orders": "orders-p6"})
        nodes = self.graph(Phase.COMPLETE, generations=running)
        assert nodes["orders"].name == "orders-p6"
        assert nodes["bridge orders"].now == 4
        assert nodes["bridge orders"].column < nodes["orders"].column
        assert ("bridge orders", "orders") in self.edges

    def test_of_a_bridge_that_has_ended_only_the_name_stays(self) -> None:
        running = Generations(running="g", generation=2, partitions=6, inputs={"orders": "orders-p6"})
        ended = Bridge(plan=self.PLAN.fingerprint, begun=True, ended_at_ms=1)
        nodes = self.graph(Phase.COMPLETE, generations=running, bridge=ended)
        assert nodes["orders"].name == "orders-p6"
        assert not [node for node in nodes.values() if node.kind is NodeKind.BRIDGED]


def test_no_two_parts_of_a_pause_share_a_colour() -> None:
    css = (ROOT / "plugins/kafka_rescale/web/static/page.css").read_text()
    colours = re.findall(r"^  --series-\d+: (.*);$", css, re.MULTILINE)
    drawn = re.findall(r"\.series-(\d+) \{ --own: var\(--series-(\d+)\)", css)
    assert len(set(colours)) == len(colours) == len(drawn) >= len(PARTS) + 1, "and what is between the parts"
    assert all(name == own for name, own in drawn)
    assert f"length: {len(colours)}" in (ROOT / "plugins/kafka_rescale/web/static/charts.js").read_text()


def test_the_newest_reading_is_shown_of_every_partition_and_the_gate_has_its_threshold() -> None:
    page = copying("orders", 1000, 2000).page()
    (topic,) = page.lags_now
    assert (topic.topic, len(topic.lags)) == ("orders-per-customer-changelog", 1000)
    assert page.measured_ms == max(each.history.samples[-1].at_ms for each in page.lags)
    assert page.threshold == 10_000
    assert len(page.model_dump_json()) < 400_000


def test_a_pause_that_goes_on_has_a_beginning_and_one_that_is_over_its_parts() -> None:
    going_on = paused("orders").page()
    assert (going_on.downtime.since_ms, going_on.downtime.total) == (NOW_MS - 3_200, None)
    assert going_on.summary.health.state is State.PAUSED
    over = complete("orders").page().downtime
    assert (over.since_ms, over.total) == (None, TIMINGS["total"])
    assert [part.name for part in over.parts] == [*(n for n in TIMINGS if n != "total"), "between"]
    assert sum(part.seconds for part in over.parts) == pytest.approx(TIMINGS["total"])
    assert "Pre-warmed" in over.remark


def test_a_part_that_nobody_foresaw_is_shown_by_its_name() -> None:
    journal = complete("orders").control.journal
    assert journal is not None
    found = downtime(journal.model_copy(update={"timings": {"novel": 1.0, "total": 1.0}}))
    assert [(part.name, part.meaning) for part in found.parts] == [("novel", "novel")]


def test_entries_per_partition_are_compared_before_and_after() -> None:
    page = complete("orders").page()
    assert [(d.store, len(d.before), len(d.after)) for d in page.distributions] == [
        ("per-region", 4, 8),
        ("per-customer", 4, 8),
    ]


def test_counts_without_many_of_the_entries_are_not_shown_as_if_they_were_all() -> None:
    world = complete("orders")
    (first, second) = report(world, passed=True).stores
    few, many = first.green.live // 20, second.green.live
    told = report(world, passed=True).model_copy(
        update={
            "stores": (first.model_copy(update={"excused": few}), second.model_copy(update={"excused": many})),
        }
    )
    assert [d.store for d in key_distributions(told)] == [first.store]
    assert f"{few:,} keys that were written meanwhile are not compared" in render(told)


@pytest.mark.parametrize(
    ("counts", "expected"), [((5, 5, 5), 1.0), ((9, 0, 0), 3.0), ((0, 0), None), ((), None)], ids=str
)
def test_skew_is_the_fullest_partition_by_the_mean(counts: tuple[int, ...], expected: float | None) -> None:
    assert skew(counts) == expected


def test_the_watch_has_its_own_section_and_is_no_job_of_the_expansion() -> None:
    world = copying("orders")
    look = JobResult(job="watch", run="watch_orders/1", attempt=1, state="asked", detail="orders has grown")
    watched = Autoscaling(failures=2)
    known = {**world.control.results, "watch": look}
    seen = replace(world, control=world.control.model_copy(update={"results": known, "autoscaling": watched}))
    page = seen.page()
    assert "watch" not in {job.job for job in page.jobs}
    assert page.work == world.page().work
    assert (page.autoscaling.failures, page.autoscaling.said) == (2, "orders has grown")
    assert [(p.subtopology, p.current, p.expected) for p in page.autoscaling.parallelism] == [
        (0, 4, 4),
        (1, 4, 4),
        (2, 4, 4),
    ]
