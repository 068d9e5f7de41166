"""How fast a job may copy: its limit is halved after each sign of harm, and grows steadily without one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.application.pacing import Pacing
from kafka_rescale.core.control.pace import Instruction, Pace, Rate
from kafka_rescale.core.expansion.pacing import (
    FLOOR,
    RAMP_MS,
    SETTLING_MS,
    Readings,
    first_rate,
    next_rate,
)
from kafka_rescale.core.expansion.pacing_lag import LEAST_GROWTH, WINDOW_MS, growth, recent

LIMIT = 1_000_000
PACE = Pace(plan="p", limit=LIMIT)
ADA = Instruction(by="ada", at_ms=1)
NOW = 1_000_000_000
WELL = Readings(NOW, 3.0, 10**9, throttled_ms=0, under_replicated=(), input_lag="")


def rate(bytes_per_second: int | None = LIMIT, **fields: object) -> Rate:
    known = {"run": "r", "attempt": 1, "limit": LIMIT, "tasks": 2, "bytes_per_second": bytes_per_second}
    return Rate.model_validate({**known, **fields})


def test_it_begins_at_the_limit_and_shares_it() -> None:
    found = first_rate(PACE, "r", 1, 4, NOW)
    assert (found.bytes_per_second, found.share, found.is_paused) == (LIMIT, LIMIT / 4, False)


def test_the_next_round_of_an_attempt_goes_on_with_the_rate_of_the_last() -> None:
    slow = rate(LIMIT // 4, slowed_by="x", slowed_ms=NOW - 1)
    again = first_rate(PACE, "r", 1, 3, NOW, slow)
    assert (again.bytes_per_second, again.tasks, again.slowed_by, again.slowed_ms) == (LIMIT // 4, 3, "x", NOW - 1)
    assert first_rate(PACE, "r", 2, 3, NOW, slow).bytes_per_second == LIMIT
    assert first_rate(PACE, "r", 1, 3, NOW, rate(LIMIT // 4)).bytes_per_second == LIMIT


def test_without_a_limit_nothing_is_adapted_whatever_is_read() -> None:
    free = first_rate(Pace(plan="p"), "r", 1, 4, NOW)
    assert free.share is None
    harmed = replace(WELL, throttled_ms=3_000, under_replicated=("t-0",), input_lag="it grows")
    found = next_rate(Pace(plan="p"), free, harmed, 4)
    assert (found.share, found.slowed_by) == (None, "")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ({"throttled_ms": 601}, "brokers made its clients wait for 0.6 s in the last 3 s (a quota)"),
        ({"under_replicated": ["t-0"]}, "1 partition has fewer replicas in sync than replicas: t-0"),
        (
            {"under_replicated": ["t-0", "t-1", "t-2", "t-3"]},
            "4 partitions have fewer replicas in sync than replicas: t-0, t-1, t-2, …",
        ),
        ({"input_lag": "its input lag grows"}, "its input lag grows"),
    ],
)
def test_each_sign_of_harm_halves_the_rate_and_is_the_reason(harm: dict[str, object], reason: str) -> None:
    found = next_rate(PACE, rate(), replace(WELL, **harm), 2)  # type: ignore[arg-type]
    assert (found.bytes_per_second, found.slowed_by, found.slowed_ms) == (LIMIT // 2, reason, NOW)


def test_a_little_throttling_is_no_harm() -> None:
    """Two tasks work for three seconds. A tenth of that is 600 ms."""
    assert next_rate(PACE, rate(), replace(WELL, throttled_ms=600), 2).bytes_per_second == LIMIT
    assert next_rate(PACE, rate(), replace(WELL, throttled_ms=600), 1).bytes_per_second == LIMIT // 2


def test_what_was_really_copied_is_halved_if_it_was_less() -> None:
    seen = replace(WELL, copied=600_000, throttled_ms=3_000)
    assert next_rate(PACE, rate(), seen, 2).bytes_per_second == 100_000
    idle = replace(WELL, copied=0, throttled_ms=3_000)
    assert next_rate(PACE, rate(), idle, 2).bytes_per_second == LIMIT // 2


def test_it_is_halved_again_only_when_the_effect_could_show() -> None:
    slow = rate(LIMIT // 2, slowed_by="x", slowed_ms=NOW - SETTLING_MS + 1)
    harmed = replace(WELL, throttled_ms=3_000)
    assert next_rate(PACE, slow, harmed, 2).bytes_per_second == LIMIT // 2
    settled = slow.model_copy(update={"slowed_ms": NOW - SETTLING_MS})
    assert next_rate(PACE, settled, harmed, 2).bytes_per_second == LIMIT // 4


def test_it_never_falls_below_the_floor() -> None:
    found = rate(LIMIT // FLOOR + 1)
    for minute in range(1, 9):
        found = next_rate(PACE, found, replace(WELL, at_ms=NOW + 60_000 * minute, throttled_ms=9_000), 2)
    assert found.bytes_per_second == LIMIT // FLOOR
    assert next_rate(Pace(plan="p", limit=1), rate(1), replace(WELL, throttled_ms=9_000), 2).bytes_per_second == 1


def test_without_harm_it_rises_by_the_same_step_up_to_the_limit_and_forgets_the_reason_there() -> None:
    slow = rate(LIMIT // 2, slowed_by="x", slowed_ms=NOW - SETTLING_MS)
    step = LIMIT * 3_000 // RAMP_MS
    found = next_rate(PACE, slow, WELL, 2)
    assert (found.bytes_per_second, found.slowed_by) == (LIMIT // 2 + step, "x")
    again = next_rate(PACE, found, WELL, 2)
    assert again.bytes_per_second == LIMIT // 2 + 2 * step
    near = next_rate(PACE, slow.model_copy(update={"bytes_per_second": LIMIT - 1}), WELL, 2)
    assert (near.bytes_per_second, near.slowed_by) == (LIMIT, "")


def test_it_does_not_rise_while_the_effect_of_the_last_step_is_awaited() -> None:
    slow = rate(LIMIT // 2, slowed_by="x", slowed_ms=NOW - SETTLING_MS + 1)
    assert next_rate(PACE, slow, WELL, 2).bytes_per_second == LIMIT // 2


def test_a_new_limit_holds_at_once_but_one_that_was_raised_ends_no_caution() -> None:
    raised = PACE.model_copy(update={"limit": 2 * LIMIT})
    assert next_rate(raised, rate(), WELL, 2).bytes_per_second == 2 * LIMIT
    slow = rate(LIMIT // 2, slowed_by="x", slowed_ms=NOW - 1)
    assert next_rate(raised, slow, WELL, 2).bytes_per_second == LIMIT // 2
    lowered = PACE.model_copy(update={"limit": LIMIT // 4})
    assert next_rate(lowered, slow, WELL, 2).bytes_per_second == LIMIT // 4
    lifted = PACE.model_copy(update={"limit": None})
    assert next_rate(lifted, rate(), WELL, 2).share is None
    first = next_rate(PACE, next_rate(lifted, rate(), WELL, 2), WELL, 2)
    assert first.bytes_per_second == LIMIT


def test_a_pause_keeps_the_rate_and_says_nothing_may_be_copied() -> None:
    paused = PACE.model_copy(update={"paused": ADA})
    slow = rate(LIMIT // 2, slowed_by="x", slowed_ms=NOW - 60_000)
    found = next_rate(paused, slow, replace(WELL, throttled_ms=9_000), 2)
    assert (found.share, found.bytes_per_second, found.slowed_by) == (0.0, LIMIT // 2, "x")
    assert first_rate(paused, "r", 1, 2, NOW).share == 0.0
    assert first_rate(Pace(plan="p", paused=ADA), "r", 1, 2, NOW).share == 0.0
    assert next_rate(PACE, found, WELL, 2).share == (LIMIT // 2 + LIMIT * 3_000 // RAMP_MS) / 2


def test_what_could_not_be_read_is_no_harm_and_is_said() -> None:
    found = next_rate(PACE, rate(), Readings(NOW, 3.0), 2)
    assert found.bytes_per_second == LIMIT
    assert found.unknown == ("whether brokers throttle", "replicas in sync", "the application's input lag")
    assert next_rate(PACE, found, WELL, 2).unknown == ()


def test_the_tasks_that_run_now_share_the_rate() -> None:
    assert next_rate(PACE, rate(), WELL, 1).share == LIMIT
    assert next_rate(PACE, rate(), WELL, 0).share == LIMIT


class TestTheInputLag:
    """Only the smallest lag of a minute counts, because the lag rises between two commits and falls with each."""

    def test_it_is_not_known_in_the_first_minute(self) -> None:
        assert growth([]) is None
        assert growth([(NOW, 5), (NOW + WINDOW_MS - 1, 9_000)]) is None

    def test_the_saw_tooth_of_commits_is_no_growth(self) -> None:
        samples = [(NOW + 3_000 * i, 500 * (i % 10)) for i in range(41)]
        assert growth(samples) == ""

    def test_a_growth_is_said_with_both_numbers(self) -> None:
        samples = [(NOW + 3_000 * i, 100 * i + 500 * (i % 10)) for i in range(41)]
        assert growth(samples) == "the application's input lag has grown from 600 to 2,600 records in a minute"

    @pytest.mark.parametrize(("before", "grown"), [(0, LEAST_GROWTH), (100_000, 10_000)])
    def test_a_small_growth_is_none(self, before: int, grown: int) -> None:
        def told(by: int) -> str | None:
            return growth([(NOW, before), (NOW + WINDOW_MS, before + by)])

        assert told(grown - 1) == ""
        assert told(grown)

    def test_older_samples_are_dropped(self) -> None:
        assert recent([(0, 1), (1, 2), (2 * WINDOW_MS, 3)]) == [(1, 2), (2 * WINDOW_MS, 3)]


def test_the_limit_of_the_file_counts_unless_a_person_has_said_one() -> None:
    declared = Pacing(bytes_per_second=7)
    assert Pace(plan="p").declared(declared).limit == 7
    assert Pace(plan="p", limit=7).declared(None).limit is None
    lifted = Pace(plan="p", limited=ADA)
    assert lifted.declared(declared).limit is None
    assert Pace.of("q", lifted) == Pace(plan="q")
    assert Pace.of("p", lifted) is lifted
