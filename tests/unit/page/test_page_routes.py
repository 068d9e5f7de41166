"""Every route of the page: refused without Airflow's authentication, and without the permission for the DAG."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from kafka_rescale.airflow.page_path import PREFIX
from kafka_rescale.web import app
from kafka_rescale.web.app import ASSETS
from starlette.routing import BaseRoute, Mount

from tests.support.airflow.per_dag_auth import NOT_THE_RUNS, token_of
from tests.support.airflow.requests import Answer, get, send
from tests.support.page.page_contents import MadeSource, complete, copying
from tests.support.page.page_server import COOKIE, SETTINGS, mounted, served

SHOWN = "orders"


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[str, FastAPI]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        root = mounted(MadeSource(copying(SHOWN), complete("flights"), broken=["lost"]))
        (sub_application,) = [r.app for r in root.routes if isinstance(r, Mount) and r.path == PREFIX]
        assert isinstance(sub_application, FastAPI)
        with served(root) as url:
            yield url + PREFIX, sub_application


@pytest.fixture
def url(page: tuple[str, FastAPI]) -> str:
    return page[0]


def paths(routes: list[BaseRoute]) -> list[str]:
    """The paths of every route, with an application and a file as their parameters."""
    found = [route for route in routes if isinstance(route, APIRoute)]
    assert len(found) == len(routes), "a mount or a plain route escapes the dependencies"
    filled = [route.path.replace("{application_id}", SHOWN).replace("{name}", "page.js") for route in found]
    assert not [path for path in filled if "{" in path]
    return filled


def as_user(name: str, url: str) -> Answer:
    return get(url, cookie=f"{COOKIE}={token_of(name)}")


def test_no_route_answers_a_request_without_authentication(page: tuple[str, FastAPI]) -> None:
    url, application = page
    found = paths(application.routes)
    assert len(found) == 5
    for path in found:
        assert get(url + path).status == 401, path
        assert get(url + path, cookie=f"{COOKIE}=forged").status in {401, 403}, path
        assert as_user("ada", url + path).status == 200, path


def test_the_check_of_the_routes_sees_one_that_is_open(page: tuple[str, FastAPI]) -> None:
    open_one = FastAPI()
    assert {getattr(route, "path", "") for route in open_one.routes} >= {"/docs", "/openapi.json"}
    with pytest.raises(AssertionError, match="escapes"):
        paths(open_one.routes)


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/static/../app.py", "/static/app.py"])
def test_nothing_else_is_served(url: str, path: str) -> None:
    assert as_user("ada", url + path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_it_only_reads(url: str, method: str) -> None:
    assert send(method, f"{url}/api/applications/{SHOWN}", f"{COOKIE}={token_of('ada')}").status == 405


def names(url: str, user: str) -> list[str]:
    return [each["application"] for each in as_user(user, f"{url}/api/applications").json()]


def test_the_list_has_what_the_user_may_see_and_nothing_else(url: str) -> None:
    assert names(url, "ada") == [SHOWN, "flights", "lost"]
    assert names(url, "bob") == [SHOWN]
    assert names(url, "eve") == []


@pytest.mark.parametrize("user", ["eve", NOT_THE_RUNS])
def test_a_user_without_the_permission_sees_nothing_of_an_application(url: str, user: str) -> None:
    assert names(url, user) == []
    hidden = [
        as_user(user, f"{url}/api/applications/{name}{rest}")
        for name in (SHOWN, "never")
        for rest in ("", "/report")
    ]
    assert {answer.status for answer in hidden} == {404}
    # The answer is the same as for an application that does not exist, so it does not even tell whether it exists.
    assert hidden[0].text.replace(SHOWN, "never") == hidden[2].text


def test_one_permission_does_not_open_another_application(url: str) -> None:
    assert as_user("bob", f"{url}/api/applications/{SHOWN}").status == 200
    assert as_user("bob", f"{url}/api/applications/flights").status == 404
    assert as_user("bob", f"{url}/api/applications/flights/report").status == 404


def test_an_application_that_cannot_be_read_says_why_and_stays_in_the_list(url: str) -> None:
    answer = as_user("ada", f"{url}/api/applications/lost")
    assert (answer.status, answer.json()) == (503, {"detail": "the broker does not answer"})


def test_the_report_is_the_one_of_the_control_topic(url: str) -> None:
    assert as_user("ada", f"{url}/api/applications/flights/report").json()["passed"] is True
    assert as_user("ada", f"{url}/api/applications/{SHOWN}/report").json() == {}


def test_a_person_who_is_not_signed_in_is_shown_where_to(url: str) -> None:
    answer = get(url + "/", accept="text/html")
    assert answer.status == 401
    assert "/auth/login?next=" in answer.text


def test_where_to_sign_in_is_never_markup(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An auth manager may pass on the address as the server has decoded it."""

    class HandsOn:
        def get_url_login(self, next_url: str) -> str:
            return f"/login?next={next_url}"

    monkeypatch.setattr(app, "get_auth_manager", HandsOn)
    answer = get(url + "/static/%22%3E%3Cimg%20src=x%3E", accept="text/html")
    assert answer.status == 401
    assert "<img" not in answer.text
    assert "&quot;&gt;&lt;img" in answer.text


def test_files_that_can_not_be_found_are_said_to_be_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: MadeSource) -> list[str]:
        raise LookupError("The application files can't be found.")

    monkeypatch.setattr(MadeSource, "applications", lost)
    for path in ("", f"/{SHOWN}"):
        answer = as_user("ada", f"{url}/api/applications{path}")
        assert (answer.status, answer.json()) == (503, {"detail": "The application files can't be found."})


def test_the_page_needs_nothing_from_elsewhere(url: str) -> None:
    answer = as_user("ada", url + "/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    written = {name: file.read_text() for name, file in ASSETS.items()}
    elsewhere = {name for name, text in written.items() if "://" in text.replace("http://www.w3.org/2000/svg", "")}
    assert elsewhere == set()
