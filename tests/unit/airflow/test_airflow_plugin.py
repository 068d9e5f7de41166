"""The plugins folder: Airflow's loader executes every file in it that is not ignored, as a top-level module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.page_path import page_path

from tests.support.application_files import write_application

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json, sys
from airflow.plugins_manager import _get_plugins
plugins, errors = _get_plugins()
from airflow.plugins_manager import get_fastapi_plugins, get_plugin_info
info = next(each for each in get_plugin_info() if each["name"] == "kafka_rescale")
print(json.dumps({"views": info["external_views"], "links": info["operator_extra_links"], "served": [
    each["url_prefix"] for each in get_fastapi_plugins()[0]], "server": "kafka_rescale.web.app" in sys.modules,
    "plugins": [p.name for p in plugins], "errors": errors, "modules": sorted(
    name for name, module in sys.modules.items()
    if "." not in name and str(getattr(module, "__file__", None)).startswith(sys.argv[1]))}))
"""


def loaded() -> dict[str, object]:
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT / "plugins")],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(output.splitlines()[-1])


def test_loading_the_plugins_adds_only_the_plugin_and_its_package() -> None:
    found = loaded()
    assert found["errors"] == {}
    assert "kafka_rescale" in found["plugins"]  # type: ignore[operator]
    assert set(found["modules"]) <= {"kafka_rescale", "kafka_rescale_plugin"}  # type: ignore[call-overload]


def test_the_page_is_registered_and_only_the_api_server_makes_it() -> None:
    found: Any = loaded()
    (view,) = found["views"]
    assert (view["destination"], view["href"]) == ("nav", "/kafka-rescale/")
    assert found["served"] == ["/kafka-rescale"]
    assert len(found["links"]) == 1
    assert found["server"] is False


def test_every_task_leads_to_the_page_of_its_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path)
    for dag in DagBag(ROOT / "dags").dags.values():
        for task in (t for t in dag.tasks if type(t).__module__.startswith("kafka_rescale")):
            links = [link for link in task.operator_extra_links if isinstance(link, ApplicationPageLink)]
            assert len(links) == 1, task.task_id
            key = SimpleNamespace(dag_id=dag.dag_id)
            expected = "/plugin/kafka-rescale/kafka-rescale/?application=orders-app"
            assert links[0].get_link(task, ti_key=key) == expected


def test_the_page_follows_airflow_below_another_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://data.example.org/airflow/")
    assert page_path("a") == "/airflow/plugin/kafka-rescale/airflow/kafka-rescale/?application=a"
