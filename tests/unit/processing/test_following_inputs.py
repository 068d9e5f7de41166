"""The decision of a pipeline's run about inputs that have grown (KIP-878)."""

from __future__ import annotations

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.processing.autoscaling import Scaling, scaling

HOUR_MS = 3_600_000
REFUSED = UnsafeState("topic", found="POLICY_VIOLATION", expected="a growth", remedy="Mend it.")


def application(enabled: bool = True) -> PipelineApplication:
    return PipelineApplication.model_validate(
        {
            "application_id": "words",
            "runtime": "spark",
            "pipeline": "tests.support.processing.counting_pipeline:words",
            "state.dir": "/tmp/words",
            "partition.autoscaling.enabled": enabled,
        }
    )


def counts(*present: int) -> PipelineProcessors:
    each = {n: ProcessorCounts(initial=count, count=count) for n, count in enumerate(present)}
    return PipelineProcessors(sub_topologies=each)


def look(*pairs: tuple[int, int], known: Autoscaling | None = None, enabled: bool = True) -> Scaling:
    """Look at sub-topologies, each with its present and its expected number of processors."""
    parallelism = tuple(Parallelism(n, *pair) for n, pair in enumerate(pairs))
    present = counts(*(current for current, _ in pairs))
    return scaling(application(enabled), present, parallelism, known or Autoscaling(), 10)


def test_an_attempt_is_made_behind_the_timeout_before_it_gives_up() -> None:
    """Runs an hour apart, and the default timeout of 15 minutes."""
    first = look((2, 4))
    assert first.targets == {0: 4}
    first = first.failed(application(), REFUSED, HOUR_MS)
    assert (first.targets, first.record.given_up, first.record.first_failure_ms) == ({}, False, HOUR_MS)

    second = look((2, 4), known=first.record)
    assert second.targets == {0: 4}, "a run is the retry"
    second = second.failed(application(), REFUSED, 2 * HOUR_MS)
    assert (second.targets, second.record.given_up, second.record.failures) == ({}, True, 1)
    (told,) = second.messages
    assert "POLICY_VIOLATION" in told
    assert "gave up growing words to 4 processors" in told

    third = look((2, 4), known=second.record)
    assert (third.targets, third.warns, third.record) == ({}, True, second.record)


def test_an_attempt_behind_the_timeout_may_succeed() -> None:
    failed = look((2, 4)).failed(application(), REFUSED, HOUR_MS)
    assert look((2, 4), known=failed.record).targets == {0: 4}
    assert not look((4, 4), known=failed.record).record.given_up


def test_a_failure_within_the_timeout_is_tried_again() -> None:
    failed = look((2, 4)).failed(application(), REFUSED, HOUR_MS)
    again = look((2, 4), known=failed.record).failed(application(), REFUSED, HOUR_MS + 60_000)
    assert (again.record.given_up, again.record.first_failure_ms) == (False, HOUR_MS)


def test_one_growth_has_one_target_whichever_sub_topology_switches_first() -> None:
    begun = look((4, 16), (2, 8))
    assert begun.targets == {0: 16, 1: 8}
    larger_first = look((16, 16), (2, 8), known=begun.record).record
    smaller_first = look((4, 16), (8, 8), known=begun.record).record
    for record in (begun.record, larger_first, smaller_first):
        assert (record.target, record.grown_from, record.attempts) == (16, 4, 1)


def test_a_growth_during_a_growth_is_told_as_one() -> None:
    begun = look((4, 8)).record
    further = look((8, 16), known=begun).record
    assert (further.target, further.grown_from, further.attempts) == (16, 4, 2)


def test_a_growth_behind_a_call_that_has_begun_is_told_by_another_call() -> None:
    called = look((4, 8)).record.model_copy(update={"callback_begun_ms": 1})
    further = look((8, 16), known=called).record
    assert (further.target, further.grown_from, further.callback_begun_ms) == (16, 8, 0)


def test_a_pipeline_that_has_begun_anew_aims_no_higher_than_its_inputs() -> None:
    begun = look((4, 16)).record
    anew = look((2, 8), known=begun).record
    assert (anew.target, anew.grown_from) == (8, 2)


def test_switched_off_it_notes_the_growth_and_asks_for_nothing() -> None:
    found = look((2, 4), enabled=False)
    assert (found.targets, found.warns) == ({}, False)
    assert (found.record.target, found.record.grown_from) == (4, 2)
    assert "`python -m kafka_rescale expand-processors`" in found.messages[0]


def test_switched_off_it_keeps_a_target_that_has_been_given_up_and_on_again_tries_anew() -> None:
    record = look((2, 4)).failed(application(), REFUSED, HOUR_MS).record.gave_up()
    off = look((2, 4), known=record, enabled=False).record
    assert (off.target, off.grown_from, off.failures) == (4, 2, 1)
    again = look((2, 4), known=off)
    assert (again.targets, again.record.attempts) == ({0: 4}, 1)
