"""What the plugin registers. Every process of Airflow imports this, so nothing of a web server is in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf

Message = MutableMapping[str, Any]
PREFIX = "/kafka-rescale"
ROUTE = "kafka-rescale"
NAME = "Rescale"


def base_path() -> str:
    """Return the path below which Airflow is served, without a slash at its end; empty for the root."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def page_path(application_id: str = "") -> str:
    """Return the address of the page within Airflow's UI; Airflow hands what follows its route on to the page."""
    chosen = f"?application={application_id}" if application_id else ""
    return f"{base_path()}/plugin/{ROUTE}{base_path()}{PREFIX}/{chosen}"


async def page(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Serve the page; the application behind it is made at the first request, in the API server alone."""
    await _application()(scope, receive, send)


@cache
def _application() -> Any:
    from kafka_rescale.web.app import create_app
    from kafka_rescale.web.kafka_source import KafkaSource

    return create_app(KafkaSource())


FASTAPI_APP = {"app": page, "url_prefix": PREFIX, "name": NAME}
EXTERNAL_VIEW = {
    "name": NAME,
    "href": f"{base_path()}{PREFIX}/",
    "destination": "nav",
    "url_route": ROUTE,
    "icon": f"{base_path()}{PREFIX}/static/icon.svg",
    "icon_dark_mode": f"{base_path()}{PREFIX}/static/icon-dark.svg",
}
