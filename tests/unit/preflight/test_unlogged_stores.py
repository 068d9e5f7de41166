"""Stores that the program does not log: preflight, the plan, and what people are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafka_rescale.airflow.markdown import plan_brief, plan_markdown, proven_markdown
from kafka_rescale.cli.file_views import application_view
from kafka_rescale.cli.views import plan_view
from kafka_rescale.core.autoscaling.parallelism import observe
from kafka_rescale.core.expansion.cutover_steps import cutover_steps
from kafka_rescale.core.page.topology_graph import topology_graph
from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.report_text import render, render_proof
from kafka_rescale.kafka.admin.describe import topics_of
from kafka_rescale.operations.application.load import topology_of

from tests.support.situations import STORES, found, situation

CHANGELOG = "shop-visits-changelog"
UNLOGGED = [{"name": "visits", "changelog": "none"} if s["name"] == "visits" else s for s in STORES]
TOLD = "Store visits is not copied: no changelog, so it is empty when the new generation starts"


def unlogged(**changes: Any) -> Situation:
    """The sound application, whose program does not log the store visits."""
    given = situation(**{"stores": UNLOGGED, "topics": {CHANGELOG: None}, **changes})
    return replace(given, topology=topology_of(given.application))


def test_it_is_taken_once_it_is_declared() -> None:
    (refused,) = found(situation(topics={CHANGELOG: None}))
    assert refused.endswith("write `- {name: visits, changelog: none}`.")
    assert found(unlogged()) == []


def test_a_changelog_that_is_left_is_not_ignored() -> None:
    given = unlogged(topics={})
    assert found(given) == [
        "topic 'shop-visits-changelog': found a changelog of store visits, declared with `changelog: none`; "
        "expected no such topic: a store without logging has none, and nothing of it would be copied. Declare the "
        "store's `type:` instead of `changelog: none`, so that it is copied. If the topic is left from a time "
        "when the program logged the store, delete the topic instead."
    ]
    assert CHANGELOG in topics_of(given.application, given.topology, "shop", {})
    assert found(replace(given, visible=frozenset(given.cluster.topics))) == found(given)


def test_the_plan_names_it_and_moves_nothing_of_it() -> None:
    plan = unlogged().plan
    assert {m.store for m in plan.changelogs} == {"customers", "totals", "hourly"}
    assert plan.not_copied == ("visits",)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.fingerprint != situation().plan.fingerprint


def test_a_plan_without_such_stores_is_as_it_was() -> None:
    plan = situation().plan
    assert "not_copied" not in plan.model_dump_json()
    assert plan.not_copied == ()


def test_preflight_says_that_it_starts_empty_and_what_that_means_for_the_stores_beside_it() -> None:
    assert not any("not copied" in said for said in messages(situation()))
    (said,) = (m for m in messages(unlogged()) if "not copied" in m)
    assert said == (
        f"{TOLD}. Sub-topology 1 also keeps customers, totals, hourly, with its whole content. Until visits has "
        "filled again, results of both differ from those without an expansion: for example, a duplicate is "
        "processed again that was known before."
    )
    topics = {f"shop-{s['name']}-changelog": None for s in STORES}
    alone = unlogged(stores=[{"name": s["name"], "changelog": "none"} for s in STORES], topics=topics)
    assert found(alone) == []
    assert [m for m in messages(alone) if "not copied" in m] == [
        f"{told_not_copied(['customers', 'totals', 'hourly', 'visits'])}."
    ]


def test_plan_and_approval_say_so() -> None:
    given, plain = unlogged(), situation()
    row = "| stage_1_subtopology_1 | not copied: no changelog | store visits | empty |  |  |"
    assert row in plan_markdown(given.plan).splitlines()
    assert f"* {TOLD}." in plan_brief(given.plan).splitlines()
    (table,) = plan_view(given.plan, ()).tables
    assert ("stage_1_subtopology_1", "not copied: no changelog", "store visits", "empty", "", "") in table.rows
    assert f"Start shop-g2. {TOLD}." in [s.does for s in cutover_steps(given.plan, given.application)]
    for text in (plan_markdown(plain.plan), plan_brief(plain.plan), str(plan_view(plain.plan, ()).tables)):
        assert "not copied" not in text
    assert "Start shop-g2." in [s.does for s in cutover_steps(plain.plan, plain.application)]


def test_the_proof_does_not_claim_it() -> None:
    offsets = ("begun", "green_begun", "fence", "green_ends", "green_begins", "blue_ends")
    nothing: dict[str, Any] = {name: {} for name in (*offsets, "green_topics", "copied_as_of_ms")}
    fences = Fences(as_of_ms=0, **nothing)
    proof = Proof(application="shop", plan="p", attempt=1, seconds=1.0, fences=fences, passed=True)
    beside = proof.model_copy(update={"not_copied": ("visits",)})
    assert "not_copied" not in proof.model_dump_json()
    assert beside.told == f"{proof.told}. {TOLD}"
    assert TOLD in render_proof(beside)
    assert proven_markdown({"detail": proof.told}, 0, ()).startswith("**The whole state was proven")
    assert proven_markdown({"detail": beside.told}, 0, ("visits",)).startswith("**All that is copied was proven")


def test_the_report_does_not_claim_it() -> None:
    report = Report(
        application="shop",
        blue="shop",
        green="shop-g2",
        generation=2,
        plan="p",
        passed=True,
        as_of_ms=0,
        seconds=1.0,
        start_offsets=(),
        stores=(),
    )
    assert "not_copied" not in report.model_dump_json()
    assert "not copied" not in render(report)
    assert f"{TOLD}." in render(report.model_copy(update={"not_copied": ("visits",)})).splitlines()


def test_the_page_and_the_commands_show_no_count_of_it() -> None:
    given = unlogged()
    nodes = topology_graph(given.topology, {"totals": 4}, given.plan).nodes
    stores = {s.name: s for n in nodes for s in n.stores}
    assert (stores["visits"].now, stores["visits"].then, stores["visits"].is_logged) == (None, None, False)
    assert (stores["totals"].now, stores["totals"].then, stores["totals"].is_logged) == (4, 8, True)
    (table,) = application_view(given.application, given.topology).tables
    assert "visits (not copied: no changelog)" in str(table.rows)


def test_autoscaling_does_not_miss_its_changelog() -> None:
    assert observe(unlogged()).missing == ""
    assert "shop-visits-changelog" in observe(situation(topics={CHANGELOG: None})).missing
