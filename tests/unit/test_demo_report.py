"""What the demo calls the right order of the stages."""

from __future__ import annotations

import pytest
from kafka_rescale.embedded.demo_report import stages_in_order

STAGES = [f"stage_{n}_of_shop.{task}" for n in (1, 2) for task in ("expand", "restore", "warm_up", "lag_gate")]
REST = ["prewarm", "catch_up", "gate_all", "cutover", "verify", "callback"]


def test_the_most_downstream_stage_begins_and_the_cutover_follows_all_of_them() -> None:
    assert stages_in_order(["preflight", "plan", *STAGES, *REST])


@pytest.mark.parametrize(
    "order",
    [
        [*STAGES[4:], *STAGES[:4], *REST],
        [*STAGES[:6], "catch_up", *STAGES[6:], *REST[2:]],
        [*STAGES, *REST[:-1]],
        REST,
    ],
    ids=["stages the other way round", "catch_up before the last stage", "no callback", "no stage"],
)
def test_every_other_order_fails_the_demo(order: list[str]) -> None:
    assert not stages_in_order(order)
