"""A whole number of the form reaches its task as one, however it was sent."""

from __future__ import annotations

import jinja2
import pytest
from kafka_rescale.airflow.dags.params import whole_number


@pytest.mark.parametrize(
    ("sent", "rendered"), [(600, "600"), (600.0, "600"), ("600.0", "600"), (0, "0"), (None, "30")], ids=repr
)
def test_a_number_of_rest_is_rendered_without_a_fraction(sent: object, rendered: str) -> None:
    """Airflow takes 600.0 for an integer, and `int` does not take its text: a run failed behind its copies."""
    template = jinja2.Template(whole_number("max_pause_seconds", 30))
    assert template.render(params={"max_pause_seconds": sent}) == rendered


def test_an_empty_field_stays_empty() -> None:
    assert jinja2.Template(whole_number("target")).render(params={"target": None}) == ""
