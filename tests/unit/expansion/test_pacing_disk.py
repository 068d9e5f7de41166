"""A copy rests as soon as a disk with its copies becomes too full, and goes on when there is room again."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.pacing import Readings, first_rate, next_rate
from kafka_rescale.core.expansion.pacing_disk import rest_of, untold
from kafka_rescale.core.expansion.pacing_words import FRESH_MS, told_pace, told_rate, told_stop

from tests.support.plans import plan_for

COPY, NOW = "app-g2-changelog", 1_795_608_000_000
PLAN = plan_for("shop")
REST = DiskRest(
    broker=3, path="/data", usable=900, total=10**6, copied=9_000, percent=10, enough=1_100, since_ms=NOW
)
TOLD = (
    "at rest since Wed 25 Nov 2026 12:00 UTC: log dir '/data' of broker 3 is too full. It has 900 usable bytes "
    "(900 B) of 1.0 MB, and 9.0 kB of copies. Of both together, 10 % must stay free (`free_disk_percent`). Free "
    "space there, enlarge the disk, or move replicas away: with 1,100 usable bytes (1.1 kB) the copy goes on by "
    "itself. To give up instead, roll back, then delete the topics of the new generation"
)


def log_dir(usable: int | None, copied: int = 9_000, broker: int = 3, **fields: Any) -> LogDir:
    """A log dir with a part of the copies, and with replicas of another topic that do not count."""
    sizes = {(COPY, 0): copied // 3, (COPY, 1): copied - copied // 3, ("orders", 0): 10**9}
    return LogDir(broker, fields.pop("path", "/data"), fields.pop("total", 10**6), usable, sizes, **fields)


def rest(*dirs: LogDir, percent: int = 10, before: DiskRest | None = None, **untold: str) -> DiskRest | None:
    reasons = {int(name.removeprefix("broker_")): reason for name, reason in untold.items()}
    return rest_of(Disks(dirs, reasons), {COPY}, percent, before, NOW)


class TestTheRule:
    """1,000 usable bytes beside 9,000 bytes of copies are a tenth of both."""

    @pytest.mark.parametrize(("usable", "rests"), [(1_000, False), (999, True), (0, True)])
    def test_it_is_kept_to_the_byte(self, usable: int, rests: bool) -> None:
        assert (rest(log_dir(usable)) is not None) is rests

    @pytest.mark.parametrize(("percent", "least"), [(0, 0), (1, 91), (50, 9_000), (99, 891_000)])
    def test_the_file_says_how_much_must_stay_free(self, percent: int, least: int) -> None:
        assert rest(log_dir(least), percent=percent) is None
        assert not least or rest(log_dir(least - 1), percent=percent) is not None

    def test_it_is_that_of_preflight(self) -> None:
        """Where preflight would let just so many bytes be written, the copy ends with the last of them."""
        before, percent = 12_345, 10
        allowed = before * (100 - percent) // 100
        assert rest(log_dir(before - allowed, allowed)) is None
        assert rest(log_dir(before - allowed - 1, allowed + 1)) is not None

    def test_it_tells_broker_log_dir_and_figures(self) -> None:
        assert rest(log_dir(900)) == REST

    def test_without_copies_in_it_a_full_log_dir_is_not_the_copys_fault(self) -> None:
        assert rest(log_dir(0, copied=0)) is None

    def test_replicas_in_a_cordoned_log_dir_go_on_growing(self) -> None:
        assert rest(log_dir(900, takes_replicas=False)) is not None

    def test_of_several_the_fullest_is_named(self) -> None:
        found = rest(log_dir(900, broker=1), log_dir(300, broker=2), log_dir(10**6, broker=4))
        assert found is not None
        assert (found.broker, found.usable) == (2, 300)


class TestGoingOn:
    @pytest.mark.parametrize(("usable", "rests"), [(1_000, True), (1_099, True), (1_100, False)])
    def test_it_takes_a_tenth_more_than_must_stay_free(self, usable: int, rests: bool) -> None:
        found = rest(log_dir(usable), before=REST)
        assert (found is not None) is rests
        assert rest(log_dir(usable)) is None, "it would not begin to rest with so many"

    def test_a_rest_keeps_its_beginning_and_gets_new_figures(self) -> None:
        found = rest(log_dir(950), before=REST.model_copy(update={"since_ms": 5}))
        assert found is not None
        assert (found.since_ms, found.usable) == (5, 950)

    def test_another_log_dir_without_room_prolongs_it(self) -> None:
        found = rest(log_dir(10**6), log_dir(1_050, broker=7), before=REST)
        assert found is not None
        assert (found.broker, found.since_ms) == (7, NOW)


class TestWhatIsNotKnown:
    def test_it_begins_no_rest(self) -> None:
        assert rest(log_dir(None)) is None
        assert rest(broker_3="RequestTimedOutError") is None

    def test_a_rest_goes_on_while_its_broker_tells_nothing_and_ends_when_the_broker_is_gone(self) -> None:
        assert rest(log_dir(10**6, broker=1), before=REST, broker_3="RequestTimedOutError") == REST
        assert rest(log_dir(10**6, broker=1), before=REST, broker_1="RequestTimedOutError") is None
        assert rest(log_dir(10**6, broker=1), before=REST) is None

    def test_a_rest_goes_on_when_its_log_dir_fails_and_ends_when_the_log_dir_is_gone(self) -> None:
        failed = LogDir(3, "/data", None, None, {}, takes_replicas=False)
        other = log_dir(10**6, path="/data2")
        assert rest(failed, other, before=REST) == REST
        assert rest(other, before=REST) is None
        assert rest(failed, other) is None
        assert list(untold(Disks((failed, other)))) == ["log dir '/data' of broker 3 (it is offline)"]

    def test_each_reason_is_told_once(self) -> None:
        disks = Disks((log_dir(None, broker=4),), {2: "no right", 1: "no right"})
        assert list(untold(disks)) == [
            "brokers 1, 2 (no right)",
            "broker 4 (its version does not tell usable bytes: Kafka 3.3 does, KIP-827)",
        ]
        assert list(untold(Disks((log_dir(900),)))) == []


class TestTheRate:
    """A rest for a disk holds with and without a limit, and leaves the rate as it was."""

    @pytest.mark.parametrize("limit", [None, 1_000])
    def test_nothing_is_copied_until_there_is_room(self, limit: int | None) -> None:
        pace = Pace(plan="p", limit=limit)
        began = first_rate(pace, "r", 1, 2, NOW)
        resting = next_rate(pace, began, Readings(NOW, 3.0, throttled_ms=10**6, disk=REST), 2)
        assert (resting.is_paused, resting.share, resting.disk) == (True, 0.0, REST)
        assert resting.bytes_per_second == limit, "harm is not looked for while nothing is copied"
        again = next_rate(pace, resting, Readings(NOW + 3_000, 3.0), 2)
        assert (again.is_paused, again.disk, again.bytes_per_second) == (False, None, limit)

    def test_the_next_round_of_an_attempt_goes_on_resting_and_another_attempt_looks_anew(self) -> None:
        known = Rate(run="r", attempt=1, disk=REST, is_paused=True)
        assert first_rate(Pace(plan="p"), "r", 1, 2, NOW, known).share == 0.0
        assert first_rate(Pace(plan="p"), "r", 2, 2, NOW, known).share is None

    def test_what_is_not_known_is_told_without_a_limit_too(self) -> None:
        seen = Readings(NOW, 3.0, untold=("broker 1 (no right)",))
        found = next_rate(Pace(plan="p"), Rate(run="r", attempt=1), seen, 2)
        assert found.share is None
        assert told_rate(Pace(plan="p"), found) == (
            "It has no limit (not known: the free space of broker 1 (no right))."
        )
        limited = next_rate(
            Pace(plan="p", limit=9), Rate(run="r", attempt=1, limit=9, bytes_per_second=9), seen, 2
        )
        assert limited.unknown[-1] == "the free space of broker 1 (no right)"


class TestWhatIsTold:
    def state(self, rate: Rate | None, pace: Pace | None = None, state: str = "running") -> ControlState:
        result = JobResult(job="catch_up", run="r", attempt=2, state=state)
        rates = {"catch_up": rate} if rate else {}
        return ControlState(journal=Journal(plan=PLAN), pace=pace, results={"catch_up": result}, rates=rates)

    def rate(self, **fields: Any) -> Rate:
        return Rate.model_validate(
            {"run": "r", "attempt": 2, "at_ms": NOW, "disk": REST, "is_paused": True, **fields}
        )

    def test_the_gates_hear_of_it_with_figures_and_remedy(self) -> None:
        assert told_stop(self.state(self.rate()), NOW + 2_000) == TOLD
        brief = told_stop(self.state(self.rate()), NOW + 2_000, with_figures=False)
        assert brief == TOLD.partition(". It has")[0]

    @pytest.mark.parametrize(
        "state",
        [
            lambda told: told.state(None),
            lambda told: told.state(told.rate(disk=None, is_paused=False)),
            lambda told: told.state(told.rate(attempt=1)),
            lambda told: told.state(told.rate(), state="failed"),
            lambda told: told.state(told.rate(at_ms=NOW - FRESH_MS)),
        ],
        ids=["no rate", "room", "an earlier attempt", "a job that is over", "a job that is silent"],
    )
    def test_only_a_job_that_says_now_that_it_rests_keeps_gates_shut(self, state: Any) -> None:
        assert told_stop(state(self), NOW) == ""

    def test_a_persons_pause_is_told_apart(self) -> None:
        paused = Pace(plan=PLAN.fingerprint, paused=Instruction(by="ada", at_ms=NOW))
        said = "paused by ada since Wed 25 Nov 2026 12:00 UTC"
        assert told_stop(self.state(self.rate(), paused), NOW) == said
        assert told_rate(paused, self.rate()) == f"It is {said}, and {TOLD}."
        assert told_pace(self.state(self.rate(), paused)).startswith(
            f"The copy is {said}. `resume` lets it go on."
        )
        assert f"The copy is {TOLD}." in told_pace(self.state(self.rate(), paused))

    def test_page_and_status_tell_it_without_any_order_about_the_pace(self) -> None:
        assert told_pace(self.state(self.rate())) == f"The copy is {TOLD}."
        unknown = self.rate(disk=None, is_paused=False, unknown=["the free space of broker 1 (no right)"])
        assert told_pace(self.state(unknown)) == "Not known: the free space of broker 1 (no right)."


def test_records_of_an_earlier_version_are_read_and_it_reads_those_without_news() -> None:
    assert Pace.model_validate_json('{"plan": "p"}').free_disk_percent == 10
    assert "free_disk_percent" not in Pace(plan="p").model_dump_json()
    off = Pace(plan="p", free_disk_percent=None)
    assert Pace.model_validate_json(off.model_dump_json()) == off
    assert "disk" not in Rate(run="r", attempt=1).model_dump_json()
    resting = Rate(run="r", attempt=1, disk=REST)
    assert Rate.model_validate_json(resting.model_dump_json()) == resting
