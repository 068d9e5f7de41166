"""Each record is parsed once, however often the state is asked for."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import ControlRecords, changed, decided, encoded
from kafka_rescale.core.errors import UnsafeState


def result(state: str) -> JobResult:
    return JobResult(job="catch_up", run="a run", attempt=1, state=state)


def values(**results: str) -> dict[str, bytes]:
    return {f"result/{job}": encoded(result(state)) or b"" for job, state in results.items()}


def test_only_a_record_that_has_changed_is_parsed_again() -> None:
    records = ControlRecords()
    first = records.state(values(catch_up="running", bridge="ready"))
    then = records.state(values(catch_up="done", bridge="ready"))
    assert then.results["bridge"] is first.results["bridge"]
    assert (first.results["catch_up"].state, then.results["catch_up"].state) == ("running", "done")


def test_each_of_two_threads_gets_the_state_that_it_has_read() -> None:
    class Raced(ControlRecords):
        def __setattr__(self, name: str, value: object) -> None:
            """Another thread keeps what it has read right behind this one."""
            super().__setattr__(name, {})

    assert Raced().state(values(catch_up="done")).results["catch_up"].state == "done"


def test_a_deleted_record_is_gone() -> None:
    records = ControlRecords()
    before = values(catch_up="running")
    assert records.state(before).results
    assert not records.state(changed(before, {"result/catch_up": None})).results


def test_a_record_that_cannot_be_read_is_named() -> None:
    with pytest.raises(UnsafeState, match=r"(?s)record 'journal'.*a record that this version"):
        ControlRecords().state({"journal": b"{}"})


@pytest.mark.parametrize("concern", [Concern.RESULT, Concern.RATE, Concern.SIGN])
def test_what_a_job_writes_decides_nothing(concern: Concern) -> None:
    assert decided({f"{concern}/catch_up": b"{}", "lease": b"{}"}) == {"lease": b"{}"}
