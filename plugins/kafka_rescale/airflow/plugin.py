"""The plugin's class. Every process of Airflow imports this file, so it must not import a web server."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.web.plugin import EXTERNAL_VIEW, FASTAPI_APP


class KafkaRescalePlugin(AirflowPlugin):
    """Registers the page and the links to it. DAGs import operators, sensors and triggers directly."""

    name = "kafka_rescale"
    fastapi_apps: ClassVar[list[Any]] = [FASTAPI_APP]
    external_views: ClassVar[list[Any]] = [EXTERNAL_VIEW]
    operator_extra_links: ClassVar[list[Any]] = [ApplicationPageLink()]
