"""The page in Airflow's own API server: registered by the plugin, in Airflow's frame, with its trigger form.

Only the server runs, in this process. ``tests/system/test_page_live.py`` starts the whole of Airflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_rescale.airflow.page_path import PREFIX, page_path
from kafka_rescale.web import plugin
from kafka_rescale.web.app import create_app

from tests.support.airflow.per_dag_auth import ADMIN, token_of
from tests.support.airflow.requests import get
from tests.support.application_files import write_application
from tests.support.page.browser import chromium
from tests.support.page.page_contents import MadeSource, copying, quiet
from tests.support.page.page_server import COOKIE, SETTINGS, prepared_database, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.integration, pytest.mark.browser]

ROOT = Path(__file__).resolve().parents[3]
NAME = "orders"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        applications = tmp_path_factory.mktemp("applications")
        write_application(applications, application_id=NAME)
        settings = {
            **SETTINGS,
            "KAFKA_RESCALE_APPLICATIONS": str(applications),
            "_AIRFLOW_PROCESS_CONTEXT": "server",
        }
        for name, value in settings.items():
            patch.setenv(name, value)
        page = create_app(MadeSource(copying(NAME), quiet("clicks")))
        patch.setattr(plugin, "_application", lambda: page)
        with served(airflow()) as url:
            yield url


def airflow() -> object:
    """Return Airflow's web application over a fresh database that knows the DAGs."""
    from airflow.api_fastapi.app import create_app as create_airflow
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    prepared_database()
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(ROOT / "dags"), "dags-folder", None)
    return create_airflow("core")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=server)
    context.add_cookies([{"name": COOKIE, "value": token_of(ADMIN), "url": server}])
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    yield opened
    context.close()


def test_the_page_is_in_the_menu_and_its_links_lead_airflow(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Rescale").click()
    framed = page.frame_locator("iframe")
    framed.get_by_role("link", name=NAME, exact=True).click()
    framed.get_by_role("heading", name=NAME, exact=True).wait_for()
    framed.get_by_role("link", name=f"DAG expand_{NAME}").click()
    page.wait_for_url(f"**/dags/expand_{NAME}")


def test_the_link_of_a_task_opens_its_application(page: Page) -> None:
    page.goto(page_path("clicks"))
    page.frame_locator("iframe").get_by_role("heading", name="clicks", exact=True).wait_for()


def test_what_everyone_sets_is_open_in_the_trigger_form_and_the_rest_is_folded(page: Page) -> None:
    page.goto(f"/dags/expand_{NAME}")
    page.get_by_role("button", name="Trigger").first.click()
    for shown in ("Policies of the inputs, from the file", "Dry run", "Approve the cutover"):
        page.get_by_text(shown).first.wait_for()
    fields = {"Approval": "Approve the plan", "Thresholds": "Longest pause", "Safety": "Application must be"}
    for folded in fields.values():
        assert not page.get_by_text(folded).first.is_visible()
    for section, shown in fields.items():
        page.get_by_role("button", name=section).click()
        page.get_by_text(shown).first.wait_for()


def test_airflow_lets_nobody_in_unasked(server: str) -> None:
    for path in ("/", "/static/page.js", "/api/applications", f"/api/applications/{NAME}"):
        assert get(server + PREFIX + path).status == 401
        assert get(server + PREFIX + path, cookie=f"{COOKIE}={token_of(ADMIN)}").status == 200
