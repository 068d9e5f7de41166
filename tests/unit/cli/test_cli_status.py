"""`status` does not call a proof or a report of before the present one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState

from tests.support.page.page_contents import complete, proven, waiting

WORLD = complete("orders")
NEXT = WORLD.plan.model_copy(update={"generation": 3, "partitions": 16})


def status(state: ControlState) -> tuple[dict[str, Any], str]:
    shown = status_view(WORLD.application, state, ())
    return dict(shown.data), shown.text


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (1, "proof before the promotion: passed; "),
        (2, "proof before the promotion, of attempt 1 (this attempt proves its copies again): passed; "),
    ],
)
def test_a_proof_of_an_earlier_attempt_is_told_as_such(attempt: int, told: str) -> None:
    state = proven(waiting("orders"))
    assert state.journal is not None
    now = state.journal.model_copy(update={"attempt": attempt})
    data, text = status(state.model_copy(update={"journal": now}))
    assert told in text
    assert (data["attempt"], data["proven"]["attempt"]) == (attempt, 1)


def test_whether_it_is_verified_is_said_of_the_present_expansion_alone() -> None:
    assert status(WORLD.control)[0]["verified"] is True
    assert status(complete("orders", passed=False).control)[0]["verified"] is False
    begun = replace(WORLD, control=WORLD.control.model_copy(update={"journal": Journal(plan=NEXT)}))
    data, text = status(begun.control)
    assert data["verified"] is None
    assert "verification of the expansion before it, to orders-g2: passed" in text
    assert (data["phase"], status(ControlState())[0]["verified"]) == (Phase.WARMING, None)
