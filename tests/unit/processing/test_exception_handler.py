"""The handler of uncaught exceptions decides by the exception (KIP-663, KIP-671)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError
from kafka_rescale.core.processing.exception_handler import exception_handler
from kafka_rescale.operations.application.load import load_pipeline_application

from tests.support.processing.failing_pipeline import ProcessorStateException
from tests.support.words_pipeline import write_pipeline

MODULE = "tests.support.processing.failing_pipeline"
TEXTS = {"found": "f", "expected": "e", "remedy": "r"}


def arrived(error: Exception, cause: Exception | None = None) -> RescaleError:
    """The error that arrives after its way through the control topic."""
    error.__cause__ = cause
    return JobFailure.model_validate_json(JobFailure.of(error).model_dump_json()).error


@pytest.mark.parametrize(
    ("error", "decision"),
    [
        (arrived(RescaleError("record", **TEXTS), ProcessorStateException("s", "c")), Decision.REPLACE_THREAD),
        (arrived(RescaleError("record", **TEXTS), ZeroDivisionError("by zero")), Decision.SHUTDOWN_CLIENT),
        (arrived(Outage("brokers", **TEXTS)), Decision.REPLACE_THREAD),
        (arrived(ProcessorStateException("s", "c")), Decision.REPLACE_THREAD),
        (arrived(MemoryError("no more")), Decision.SHUTDOWN_CLIENT),
    ],
)
def test_a_function_decides_by_what_the_thread_died_of(error: Exception, decision: Decision) -> None:
    assert exception_handler(f"{MODULE}:handler")(error) is decision


def test_an_error_arrives_with_its_class_and_its_texts_and_so_does_its_cause() -> None:
    error = arrived(Outage("brokers", **TEXTS), ProcessorStateException("counts", "gone"))
    assert (type(error), str(error)) == (Outage, "brokers: found f; expected e. r")
    assert (type(error.__cause__), str(error.__cause__)) == (ProcessorStateException, "counts: gone")


def test_a_cause_that_can_not_be_imported_here_arrives_as_its_text() -> None:
    class Local(Exception):
        pass

    error = arrived(Outage("brokers", **TEXTS), Local("somewhere"))
    assert (type(error.__cause__), str(error.__cause__)) == (Exception, "somewhere")


@pytest.mark.parametrize("decision", Decision)
def test_a_decision_in_its_place_is_taken_whatever_a_thread_dies_of(decision: Decision) -> None:
    assert exception_handler(str(decision))(MemoryError()) is decision


@pytest.mark.parametrize("name", ["handler_that_fails", "handler_that_answers_something_else"])
def test_a_handler_that_does_not_decide_ends_the_client(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert exception_handler(f"{MODULE}:{name}")(MemoryError("no more")) is Decision.SHUTDOWN_CLIENT
    assert f"uncaught.exception.handler '{MODULE}:{name}' failed on MemoryError('no more')" in caplog.text


@pytest.mark.parametrize("name", ["missing", "INPUT"])
def test_a_handler_that_is_no_function_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="a function of the exception that returns REPLACE_THREAD"):
        exception_handler(f"{MODULE}:{name}")


def test_it_is_declared_by_name(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, **{"uncaught.exception.handler": f"{MODULE}:handler"})
    assert load_pipeline_application(file).uncaught_exception_handler == f"{MODULE}:handler"
