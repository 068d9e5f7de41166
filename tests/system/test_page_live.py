"""The page in a real Airflow, in Chromium, while a live application is expanded.

Slow: a broker, Kafka Streams, Spark and all parts of Airflow. With ``KAFKA_RESCALE_PICTURES`` it
saves the pictures of ``docs/page.md`` into that directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_rescale.airflow.page_path import PREFIX

from testbed.airflow_client import AirflowClient
from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT
from testbed.flights_stack import FlightsStack
from tests.support.airflow.guarded_server import guarded_server
from tests.support.airflow.per_dag_auth import ADMIN, token_of
from tests.support.airflow.requests import get
from tests.support.page.browser import chromium
from tests.support.page.page_server import COOKIE, SETTINGS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page

pytestmark = [pytest.mark.system, pytest.mark.slow]

DAG = "expand_flights"
FLIGHTS, RATE = 60_000, 150
LIMIT = 900
ROUTES = (
    "/",
    "/static/page.js",
    "/api/applications",
    "/api/applications/flights",
    "/api/applications/flights/report",
)


@dataclass
class World:
    """One Airflow, users who may see different things, and a browser.

    :param client: client of the API server that tells the users apart.
    """

    client: AirflowClient
    browser: Browser

    def page(self, user: str, path: str) -> Page:
        """Open a page of Airflow as a user."""
        context = self.browser.new_context(viewport={"width": 1400, "height": 1000})
        context.add_cookies([{"name": COOKIE, "value": token_of(user), "url": self.client.url}])
        page = context.new_page()
        page.set_default_timeout(LIMIT * 1000)
        page.goto(self.client.url + path)
        return page


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch, EmbeddedBroker(directory / "broker", heap="512m") as broker:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        stack = FlightsStack(directory / "flights", broker.bootstrap_servers, preload=FLIGHTS, rate=RATE)
        airflow = AirflowStandalone(
            directory / "airflow",
            connections={
                "kafka_default": {"conn_type": "kafka", "extra": stack.client},
                "spark_default": {"conn_type": "spark", "host": "local[2]"},
            },
            env={
                **stack.environment,
                **SETTINGS,
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
                "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}",
                "KAFKA_RESCALE_APPLICATIONS": str(ROOT / "applications"),
            },
        )
        airflow.client = AirflowClient(airflow.url, airflow.log_file, token_of(ADMIN))
        try:
            stack.start_replay()
            stack.await_sent(FLIGHTS)
            assert stack.run("start") == 0
            with airflow, guarded_server(airflow) as client, chromium() as browser:
                yield World(client, browser)
        finally:
            stack.stop("flights", "flights-g2")


def picture(page: Page, name: str) -> None:
    if directory := os.environ.get("KAFKA_RESCALE_PICTURES"):
        page.screenshot(path=str(Path(directory) / f"{name}.png"))


def framed(page: Page) -> FrameLocator:
    return page.frame_locator("iframe")


def test_no_route_answers_who_is_not_signed_in(world: World) -> None:
    for route in ROUTES:
        url = world.client.url + PREFIX + route
        assert get(url).status == 401, route
        assert get(url, cookie=f"{COOKIE}={token_of(ADMIN)}").status == 200, route


def test_who_may_not_see_the_dag_sees_nothing_of_it(world: World) -> None:
    page = world.page("eve", f"{PREFIX}/")
    page.get_by_text("no application whose runs you may see").wait_for()
    assert "flights" not in page.inner_text("main")
    for route in ROUTES[3:]:
        assert get(world.client.url + PREFIX + route, cookie=f"{COOKIE}={token_of('eve')}").status == 404


def test_a_live_expansion_is_followed_from_the_trigger_to_the_proof(world: World) -> None:
    page = world.page(ADMIN, "/plugin/kafka-rescale")
    framed(page).get_by_role("link", name="flights", exact=True).click()
    framed(page).get_by_text("Group Stable").wait_for()
    run = world.client.trigger(DAG, {"target": 8, "approve_cutover": True})

    framed(page).locator(".node.working").first.wait_for()
    framed(page).locator("canvas.heat").wait_for()
    picture(page, "page-copying")

    world.client.wait_for_task(DAG, run, "approve_cutover", states={"awaiting_input"}, timeout=LIMIT)
    body = world.client.hitl(DAG, run, "approve_cutover")["body"]
    assert body.startswith("**The whole state was proven ")
    assert "within 10,000 offsets of the end; the largest lag is" in body
    assert "Copied: " in body
    assert "/plugin/kafka-rescale/kafka-rescale/?application=flights" in body
    assert framed(page).locator("#progress tr", has_text="gate all").count() == 1
    framed(page).locator("#lag").scroll_into_view_if_needed()
    picture(page, "page-lag")
    framed(page).locator("#verification").get_by_text("Proven").wait_for()
    framed(page).locator("#verification").scroll_into_view_if_needed()
    picture(page, "page-proven")
    approval = world.page(ADMIN, f"/dags/{DAG}/runs/{run}/tasks/approve_cutover/required_actions")
    approval.get_by_text("The whole state was proven").wait_for()
    picture(approval, "approval")
    approval.context.close()

    world.client.approve(DAG, run, "approve_cutover")
    assert world.client.wait_for_run(DAG, run, timeout=LIMIT) == "success"
    framed(page).get_by_text("in which nothing was processed").wait_for()
    framed(page).locator("#verification").get_by_text("Passed").wait_for()
    framed(page).locator("#downtime").scroll_into_view_if_needed()
    picture(page, "page-complete")
    framed(page).locator("#distribution canvas.bars").first.wait_for()

    links = world.client.request("GET", f"/dags/{DAG}/dagRuns/{run}/taskInstances/cutover/links")["extra_links"]
    page.goto(world.client.url + links["Application"])
    framed(page).get_by_role("heading", name="flights", exact=True).wait_for()
    framed(page).get_by_role("link", name="Go to the run").click()
    page.wait_for_url(f"**/dags/{DAG}/runs/**")
