"""Autoscaling in an application file: KIP-878's own names, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_application

from tests.support.application_files import write_application

ENABLED, TIMEOUT = "partition.autoscaling.enabled", "partition.autoscaling.timeout.ms"


def test_it_is_declared_by_the_names_of_the_kip(tmp_path: Path) -> None:
    bounds = {"windows": ["mon-fri 22:00-05:00"], "maximum_partitions": 64, "approval_above": 16}
    application = load_application(
        write_application(tmp_path, **{ENABLED: True, TIMEOUT: 60_000, "autoscaling_bounds": bounds})
    )
    assert (application.autoscaling_enabled, application.autoscaling_timeout_ms) == (True, 60_000)
    assert application.autoscaling_bounds.maximum_partitions == 64


def test_a_window_needs_no_quotes(tmp_path: Path) -> None:
    file = write_application(tmp_path)
    file.write_text(f"{file.read_text()}autoscaling_bounds: {{windows: [22:00-05:00, sat-sun 00:00-24:00]}}\n")
    assert len(load_application(file).autoscaling_bounds.windows) == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("partition.autoscaling.enable", True, "Did you mean `partition.autoscaling.enabled`?"),
        ("autoscaling_enabled", True, "the unknown field `autoscaling_enabled`"),
        (ENABLED, "perhaps", "found 'perhaps'; expected true or false"),
        (TIMEOUT, -1, "found -1; expected 0 or more"),
        ("autoscaling_bounds", {"maximum": 8}, "Did you mean `maximum_lag`?"),
        ("autoscaling_bounds", {"windows": ["at night"]}, "as in `mon-fri 22:00-05:00`"),
        ("autoscaling_bounds", {"time_zone": "Berlin"}, "expected a name of the tz database"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, field: str, value: Any, message: str) -> None:
    file = write_application(tmp_path, **{field: value})
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if text.startswith(f"{field}:"))
    with pytest.raises(InvalidInput) as refused:
        load_application(file)
    assert message in str(refused.value)
    assert any(f"{file}:{line + further}" in str(refused.value) for further in range(3))


def test_in_place_there_is_nothing_that_it_could_do(tmp_path: Path) -> None:
    file = write_application(tmp_path, mode="in_place", **{ENABLED: True})
    with pytest.raises(InvalidInput, match=r"partition\.autoscaling\.enabled with mode in_place"):
        load_application(file)
