"""What the plugin registers. Every process of Airflow imports this file, so it must not import a web server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import TYPE_CHECKING, Any

from kafka_rescale.airflow.page_path import PREFIX, ROUTE, base_path

if TYPE_CHECKING:
    from kafka_rescale.kafka.client.connection import KafkaConnection

Message = MutableMapping[str, Any]
NAME = "Rescale"


async def page(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Serve the page. Its application is made at the first request, and therefore only in the API server."""
    await _application()(scope, receive, send)


@cache
def _application() -> Any:
    from kafka_rescale.web.app import create_app
    from kafka_rescale.web.kafka_source import KafkaSource

    return create_app(KafkaSource(_airflow_connection))


FASTAPI_APP = {"app": page, "url_prefix": PREFIX, "name": NAME}
EXTERNAL_VIEW = {
    "name": NAME,
    "href": f"{base_path()}{PREFIX}/",
    "destination": "nav",
    "url_route": ROUTE,
    "icon": f"{base_path()}{PREFIX}/static/icon.svg",
    "icon_dark_mode": f"{base_path()}{PREFIX}/static/icon-dark.svg",
}


def _airflow_connection(conn_id: str) -> KafkaConnection:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    return KafkaRescaleHook(kafka_config_id=conn_id).connection()
