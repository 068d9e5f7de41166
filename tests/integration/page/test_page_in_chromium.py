"""The page in a real browser: live data, a thousand partitions, Airflow's frame, and users without permission."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from kafka_rescale.airflow.page_path import PREFIX
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Phase

from tests.support.airflow.per_dag_auth import token_of
from tests.support.page.browser import Complaints, chromium
from tests.support.page.page_contents import (
    MadeSource,
    World,
    complete,
    control,
    copying,
    paused,
    progress,
    proven,
    quiet,
    waiting,
)
from tests.support.page.page_server import COOKIE, SETTINGS, mounted, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.integration, pytest.mark.browser]

HUGE = 1000
FRAME = f"""<!doctype html><iframe style="width:1200px;height:800px" src="{PREFIX}/?application=orders"
 sandbox="allow-scripts allow-same-origin allow-forms allow-downloads"></iframe>"""
"""An external view as Airflow 3.3 shows it."""
MARKUP = "<img src=x onerror=document.title='broken'>"

Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def source() -> MadeSource:
    return MadeSource(copying("orders"), copying("huge", HUGE, 2 * HUGE), quiet("clicks"), broken=["lost"])


@pytest.fixture(scope="module")
def server(source: MadeSource) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        with served(with_frame(mounted(source))) as url:
            yield url


def with_frame(application: FastAPI) -> FastAPI:
    @application.get("/frame")
    def frame() -> HTMLResponse:
        return HTMLResponse(FRAME)

    @application.get("/dags/{rest:path}")
    def dag(rest: str) -> HTMLResponse:
        return HTMLResponse(f"<h1>Airflow shows {rest}</h1>")

    return application


@pytest.fixture
def open_page(browser: Browser, server: str) -> Iterator[Open]:
    contexts = []

    def opened(path: str = f"{PREFIX}/", user: str | None = "ada", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        if user is not None:
            context.add_cookies([{"name": COOKIE, "value": token_of(user), "url": server}])
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.complaints = Complaints(page, server)  # type: ignore[attr-defined]
        page.goto(server + path)
        return page

    yield opened
    for context in contexts:
        context.close()


def of(application: str) -> str:
    return f"{PREFIX}/?application={application}"


def rolled_back(world: World) -> World:
    """Its parts lack the rest of the pause: that of the failed part, and until the application ran again."""
    assert world.control.journal is not None
    journal = world.control.journal.model_copy(update={"phase": Phase.ROLLED_BACK, "stop_asked": True})
    return replace(world, control=world.control.model_copy(update={"journal": journal}), live=True)


def assert_content(page: Page) -> None:
    complaints: Complaints = page.complaints  # type: ignore[attr-defined]
    assert (complaints.errors, complaints.elsewhere) == ([], [])


def test_the_list_leads_to_an_application_and_back(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("link", name="orders", exact=True).click()
    page.get_by_role("heading", name="orders", exact=True).wait_for()
    page.get_by_role("link", name="All applications").click()
    assert "the broker does not answer" in page.locator("tr", has_text="lost").inner_text()
    assert_content(page)


def test_an_expansion_is_followed_without_reloading(open_page: Open, source: MadeSource) -> None:
    source.worlds["orders"] = copying("orders")
    page = open_page(of("orders"))
    page.locator(".node.working", has_text="sub-topology 1").wait_for()
    assert page.locator("#progress tbody tr").count() == 4
    assert page.locator("#downtime").is_hidden()
    page.locator("#cutover summary").click()
    page.locator("#cutover").get_by_text(
        "orders-per-region-changelog -> orders-g2-per-region-changelog"
    ).last.wait_for()
    source.worlds["orders"] = waiting("orders")
    page.locator("#cutover").get_by_text("The switch waits: the next window begins").wait_for()
    source.worlds["orders"] = replace(waiting("orders"), control=proven(waiting("orders")))
    page.locator("#verification").get_by_text("What was written since is compared up to").wait_for()
    source.worlds["orders"] = paused("orders")
    page.get_by_text("nothing is being processed").wait_for()
    source.worlds["orders"] = rolled_back(paused("orders"))
    page.locator("#downtime").get_by_text("for how long nothing was processed. Of it are known:").wait_for()
    source.worlds["orders"] = complete("orders")
    page.get_by_text("in which nothing was processed").wait_for()
    page.locator("#verification").get_by_text("Passed").wait_for()
    page.locator("#distribution canvas.bars").first.wait_for()
    assert page.locator(".node.working").count() == 0
    assert page.locator("#cutover").is_hidden(), "there is no cutover to come any more"
    assert_content(page)


def test_a_proof_that_sorts_what_it_has_read_shows_no_time_left(open_page: Open, source: MadeSource) -> None:
    world = copying("orders")
    proof = JobResult(job="prove", run="r", attempt=1, state="running", partitions=tuple(progress("t", 4, 0)))
    source.worlds["orders"] = replace(world, control=control(world, Phase.WARMING, [proof]))
    page = open_page(of("orders"))
    row = page.locator("#progress tr", has_text="100 % read")
    row.wait_for()
    assert row.locator("th, td").nth(5).inner_text() == "–"
    known = proof.model_copy(update={"seconds_left": 75.0})
    source.worlds["orders"] = replace(world, control=control(world, Phase.WARMING, [known]))
    row.get_by_text("1 min 15 s").wait_for()
    assert_content(page)


def test_the_name_of_a_job_leads_to_the_task_of_its_own_run(open_page: Open, source: MadeSource) -> None:
    world = copying("orders")
    bridge = JobResult(job="bridge", run="bridge_orders/at work", attempt=1, state="carrying")
    results = {**world.control.results, "bridge": bridge}
    source.worlds["orders"] = replace(world, control=world.control.model_copy(update={"results": results}))
    page = open_page(of("orders"))
    page.locator("#progress").get_by_role("link", name="bridge").wait_for()
    ways = [link.get_attribute("href") for link in page.locator("#progress a").all()]
    assert ways[-1] == "/dags/bridge_orders/runs/at%20work/tasks/bridge"
    assert all(str(way).startswith("/dags/expand_orders/runs/manual__2026-09-21") for way in ways[:-1])
    assert_content(page)


def test_a_thousand_partitions_are_shown_and_respond(open_page: Open, source: MadeSource) -> None:
    source.worlds["huge"] = copying("huge", HUGE, 2 * HUGE)
    page = open_page(of("huge"))
    every = page.locator("#lag div[aria-label='Lag of every partition']")
    every.wait_for()
    # However many partitions there are, the number of elements on the page stays small.
    assert page.evaluate("document.querySelectorAll('*').length") < 2_000
    assert page.evaluate("document.querySelector('canvas.heat').height") <= 96
    assert "1–15 of 1,000" in page.locator("#lag .pager").last.inner_text()
    page.get_by_label("Order").select_option("by topic")
    page.locator("#lag").get_by_label("Last page").last.click()
    assert every.locator("tbody tr").last.inner_text().split("\t")[1] == f"{HUGE - 1}"
    page.locator("canvas.heat").hover(position={"x": 600, "y": 100})
    page.locator("#lag output", has_text="huge-per-customer-changelog").wait_for()
    source.worlds["huge"] = complete("huge", HUGE, 2 * HUGE)
    page.locator("#verification summary").click()
    assert "of 2,000" in page.locator("#verification .pager").inner_text()
    assert_content(page)


def test_new_data_leave_a_person_where_they_are(open_page: Open, source: MadeSource) -> None:
    source.worlds["huge"] = copying("huge", HUGE, 2 * HUGE)
    page = open_page(of("huge"))
    page.locator("#lag").get_by_label("Next page").last.click()
    source.worlds["huge"] = copying("huge", HUGE, 2 * HUGE, readings=41)
    page.locator("canvas.heat[width='41']").wait_for()
    assert "16–30 of 1,000" in page.locator("#lag .pager").last.inner_text()


def test_what_stands_in_a_key_is_never_markup(open_page: Open, source: MadeSource) -> None:
    source.worlds["orders"] = spoilt(complete("orders", passed=False))
    page = open_page(of("orders"))
    page.locator("#verification td", has_text=MARKUP).first.wait_for()
    assert page.locator("#verification img").count() == 0
    assert page.title() == "orders · Kafka Rescale"
    assert_content(page)


def spoilt(world: World) -> World:
    report = {**world.control.report}
    stores: Any = report["stores"]
    stores[0]["findings"][0]["text"] = MARKUP
    return replace(world, control=world.control.model_copy(update={"report": report}))


def test_it_follows_the_colors_of_the_system_and_of_airflow(open_page: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (open_page(color_scheme=scheme).evaluate(ground) for scheme in ("light", "dark"))
    assert light != dark


def test_in_airflows_frame_its_links_lead_airflow(open_page: Open, source: MadeSource) -> None:
    source.worlds["orders"] = copying("orders")
    page = open_page("/frame")
    page.frame_locator("iframe").get_by_role("link", name="Go to the run").click()
    page.get_by_role("heading", name="Airflow shows expand_orders/runs/manual__2026-09-21").wait_for()


def test_who_is_not_signed_in_gets_nothing(open_page: Open) -> None:
    page = open_page(of("orders"), user=None)
    assert "sign in" in page.inner_text("body")
    assert "orders" not in page.inner_text("body")


def test_who_may_not_see_the_dag_sees_nothing_of_the_application(open_page: Open) -> None:
    page = open_page(user="eve")
    page.get_by_text("no application whose runs you may see").wait_for()
    assert "orders" not in page.inner_text("main")
    page = open_page(of("orders"), user="eve")
    assert "There is no application" in page.get_by_role("alert").inner_text()
    assert page.locator("#topology svg").count() == 0
    page = open_page(user="bob")
    page.get_by_role("link", name="orders", exact=True).wait_for()
    assert page.locator("tbody tr").count() == 1
