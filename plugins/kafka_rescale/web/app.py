"""The FastAPI application of the page. It only reads, and no route answers without Airflow's authentication."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol, TypeVar

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, get_user
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from kafka_rescale.core.page.page import ApplicationPage
from kafka_rescale.core.page.summary import Summary
from kafka_rescale.web.access import PermittedApplication, not_found, permitted

T = TypeVar("T")
STATIC = Path(__file__).with_name("static")
ASSETS = {file.name: file for file in sorted(STATIC.iterdir())}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}
SIGN_IN = '<!doctype html><title>Kafka Rescale</title><p>Please <a target="_top" href="{login}">sign in</a> first.'


class Source(Protocol):
    """The source of the page's contents. Each call may block."""

    def applications(self) -> list[str]:
        """Return the names of all applications.

        :raises LookupError: The names can't be read. The text says why.
        """

    def summaries(self, application_ids: Sequence[str]) -> list[Summary]:
        """Return one line for each application, within seconds. An error of a cluster becomes part of its line."""

    def page(self, application_id: str) -> ApplicationPage:
        """Return everything about an application.

        :raises LookupError: The application can't be read. The text says why.
        """

    def report(self, application_id: str) -> dict[str, Any]:
        """Return the last verification report, empty if there is none.

        :raises LookupError: The report can't be read. The text says why.
        """


def create_app(source: Source) -> FastAPI:
    """Return the application.

    The OpenAPI schema and its two documentation pages are off, because FastAPI would serve them without
    authentication.
    """
    app = FastAPI(
        title="Kafka Rescale", dependencies=[Depends(get_user)], openapi_url=None, docs_url=None, redoc_url=None
    )
    app.middleware("http")(_with_headers)
    app.exception_handler(AnyHTTPException)(_refused)
    _add_page(app)
    _add_api(app, source)
    return app


def _add_page(app: FastAPI) -> None:
    @app.get("/")
    def index() -> FileResponse:
        return FileResponse(ASSETS["index.html"])

    @app.get("/static/{name}")
    def asset(name: str) -> FileResponse:
        if name not in ASSETS:
            raise HTTPException(404, f"There is no file {name!r}.")
        return FileResponse(ASSETS[name])


def _add_api(app: FastAPI, source: Source) -> None:
    @app.get("/api/applications")
    def applications(user: GetUserDep) -> list[Summary]:
        return source.summaries(permitted(user, _found(source.applications)))

    @app.get("/api/applications/{application_id}")
    def application(application_id: PermittedApplication) -> ApplicationPage:
        _assert_known(source, application_id)
        return _found(lambda: source.page(application_id))

    @app.get("/api/applications/{application_id}/report")
    def report(application_id: PermittedApplication) -> dict[str, Any]:
        _assert_known(source, application_id)
        return _found(lambda: source.report(application_id))


def _assert_known(source: Source, application_id: str) -> None:
    if application_id not in _found(source.applications):
        raise not_found(application_id)


def _found(read: Callable[[], T]) -> T:
    try:
        return read()
    except LookupError as error:
        raise HTTPException(503, str(error.args[0])) from None


async def _with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    response.headers.update(HEADERS)
    return response


async def _refused(request: Request, error: AnyHTTPException) -> Response:
    """Answer a request without a user: a browser gets a link to the sign-in page, a program the plain error."""
    if error.status_code == 401 and "text/html" in request.headers.get("accept", ""):
        login = get_auth_manager().get_url_login(next_url=str(request.url))
        return HTMLResponse(SIGN_IN.format(login=escape(login)), status_code=401)
    return await http_exception_handler(request, error)
