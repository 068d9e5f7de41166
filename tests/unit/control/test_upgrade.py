"""Records of the control topic that another version has written are read, and written again unchanged.

``tests/data/upgrade/<version>.json`` has the last record per key of that version, byte by byte.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_rescale.core.control.generations import promoted_generations
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import ControlRecords
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.producers import after_rollback
from kafka_rescale.core.verify.report import Report

from tests.support.expansion.control_states import after
from tests.support.house.names import flights_plan
from tests.support.house.upgrades import VERSIONS, records_of

APPLICATIONS = ("flights", "words")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_record_is_read_and_loses_nothing(version: str, application: str) -> None:
    records = records_of(version, application)
    state = ControlRecords().state(records)
    for key, value in records.items():
        concern, _, detail = key.partition("/")
        found = state.results[detail] if concern == Concern.RESULT else getattr(state, concern)
        again = found if concern == Concern.REPORT else json.loads(found.model_dump_json())
        before = json.loads(value)
        assert _as_known(again, before) == before
    assert after(state, {}) == state


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_expansion_has_the_same_plan(version: str) -> None:
    journal = ControlRecords().state(records_of(version, "flights")).journal
    assert journal is not None
    # One difference: every attempt goes on with a producer per partition, as that version has begun.
    assert journal.plan == after_rollback(flights_plan(), journal.plan)
    assert journal.plan.fingerprint == json.loads(records_of(version, "flights")["report"])["plan"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_report_is_about_what_was_promoted(version: str) -> None:
    state = ControlRecords().state(records_of(version, "flights"))
    assert state.journal is not None
    assert Report.model_validate(state.report).promotion == state.journal.promotion


@pytest.mark.parametrize("version", VERSIONS)
def test_the_expansion_goes_on_to_its_end(version: str) -> None:
    state = ControlRecords().state(records_of(version, "flights"))
    journal = state.journal
    assert journal is not None
    assert journal.phase is Phase.CAUGHT_UP
    for phase in (Phase.PROMOTED, Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE):
        journal = journal.advanced(phase, now_ms=2)
    after = promoted_generations(journal, state.generations)
    assert (after.running, after.generation, after.previous) == ("flights-g2", 2, "flights")
    assert after.since_ms == journal.pause_started_ms > 0


def test_a_record_of_a_newer_version_asks_for_that_version() -> None:
    """Back to the version that began the expansion, nothing could read what the newer one has written."""
    records = records_of(VERSIONS[-1], "flights")
    newer = json.dumps({**json.loads(records["journal"]), "field_of_tomorrow": 1}).encode()
    with pytest.raises(UnsafeState, match="A newer version has written it") as told:
        ControlRecords().state({**records, "journal": newer})
    assert "Install that version everywhere" in told.value.remedy


def _as_known(now: Any, before: Any) -> Any:
    """The values that are read, without fields that the earlier version did not have."""
    if isinstance(before, dict):
        return {name: _as_known(now[name], value) for name, value in before.items()}
    if isinstance(before, list):
        return [*(_as_known(*pair) for pair in zip(now, before, strict=False)), *now[len(before) :]]
    return now
