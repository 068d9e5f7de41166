"""The address of the page within Airflow's UI."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf

PREFIX = "/kafka-rescale"
ROUTE = "kafka-rescale"


def base_path() -> str:
    """Return the path below which Airflow is served, without a slash at its end. It is empty for the root."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def page_path(application_id: str = "") -> str:
    """Return the address of the page within Airflow's UI. Airflow passes the part behind its route to the page."""
    chosen = f"?application={application_id}" if application_id else ""
    return f"{base_path()}/plugin/{ROUTE}{base_path()}{PREFIX}/{chosen}"
