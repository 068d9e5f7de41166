"""No stored name changes by accident: all are compared with a list that was written before files were moved.

New names may be added to the list. To remove a name needs a decision, and a way for users who have stored it.
"""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from tests.support.house.names import names, recorded

RECORDED = json.loads(recorded("names.json").read_text())
PUBLIC = [
    "kafka_rescale.airflow.all_dags",
    "kafka_rescale.airflow.hooks.rescale",
    "kafka_rescale.airflow.operators",
    "kafka_rescale.airflow.sensors",
    "kafka_rescale.airflow.triggers",
    "kafka_rescale.core.pipeline",
    "kafka_rescale.spark.vectorized",
]
"""Modules that users import, or that Airflow's database names."""


def gone(before: object, now: object, path: str = "") -> list[str]:
    """Return the names that are missing or changed, by their place in the list."""
    if isinstance(before, dict):
        after = now if isinstance(now, dict) else {}
        missing = [f"{path}/{name}" for name in before if name not in after]
        return missing + [f for n in before if n in after for f in gone(before[n], after[n], f"{path}/{n}")]
    if isinstance(before, list) and isinstance(now, list):
        return [f"{path}: {each}" for each in before if each not in now]
    return [] if before == now else [f"{path}: {before}"]


@pytest.fixture(scope="module")
def now() -> dict[str, object]:
    """The present names."""
    found: dict[str, object] = json.loads(json.dumps(names()))
    return found


@pytest.mark.parametrize("kind", RECORDED)
def test_every_name_is_still_there(kind: str, now: dict[str, object]) -> None:
    assert gone(RECORDED[kind], now[kind]) == []


def test_new_kinds_of_names_are_recorded(now: dict[str, object]) -> None:
    assert now.keys() == RECORDED.keys()


def test_a_name_that_is_gone_is_found() -> None:
    before = {"tasks": ["plan", "expand"], "topic": "t", "of": {"a": 1}}
    assert gone(before, before) == []
    assert gone(before, {"tasks": ["plan"], "topic": "u", "of": {}}) == ["/tasks: expand", "/topic: t", "/of/a"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_stay_where_they_are(name: str) -> None:
    assert import_module(name).__name__ == name
