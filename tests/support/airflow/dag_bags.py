"""The DAGs of the application files that are in use, as Airflow parses them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

ROOT = Path(__file__).resolve().parents[3]


def parsed() -> DagBag:
    """Parse all of them, and assert that every file could be imported."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    return bag
