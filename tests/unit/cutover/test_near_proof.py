"""How far the comparison is, before blue is stopped. No clock of one machine is compared with that of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.lag_history import LagHistory, LagSample
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify.rolling_proof import compared_by
from kafka_rescale.operations.cutover import proven
from kafka_rescale.operations.cutover.proven import NEAR_SECONDS, WAITED_SECONDS, await_near_proof

from tests.support.plans import plan_for
from tests.support.verify import proofs

JOURNAL = Journal(plan=plan_for("shop"))
CUTOVER_MS = 1_700_000_000_000


class Driver:
    """The control topic, into which the driver of ``catch_up`` reports every two seconds.

    :param ahead_seconds: how far the clock of its machine is ahead of that of the cutover.
    :param behind_seconds: how long before each report the comparison was where it is.
    :param dies_at: seconds from now at which it dies.
    :param names_itself: whether it is of this version, and says which try has compared.
    :param next_try: seconds from now at which Airflow's next try reports that it runs. It has no lag to tell yet.
    :param next_reports: seconds from now at which that try reports lags, by a clock that is right. It does not
        compare before the end of the test.
    """

    def __init__(
        self,
        *,
        ahead_seconds: float = 0,
        behind_seconds: float = 5,
        dies_at: float = 1e9,
        names_itself: bool = True,
        next_try: float = 1e9,
        next_reports: float = 1e9,
    ) -> None:
        self._ahead, self._behind, self._dies_at = ahead_seconds, behind_seconds, dies_at
        self._next_try, self._next_reports = next_try, next_reports
        self._by = compared_by("r", 1) if names_itself else ""
        self.seconds = 0.0

    def read(self) -> ControlState:
        at = 2 * (min(self.seconds, self._dies_at) // 2)
        at_ms = round(CUTOVER_MS + 1000 * (at + self._ahead))
        lags = LagHistory(samples=(LagSample(at_ms=at_ms, total=0, worst=()),))
        result = JobResult(job="catch_up", run="r", attempt=1, state="ready", lags=lags)
        if self.seconds >= self._next_try:
            right_ms = round(CUTOVER_MS + 1000 * self.seconds)
            of_next = (LagSample(at_ms=right_ms, total=0, worst=()),) if self.seconds >= self._next_reports else ()
            lags = LagHistory(samples=of_next)
            result = JobResult(job="catch_up", run="r", attempt=2, state="running", lags=lags)
        rolling = proofs.rolling_of(JOURNAL)
        fences = rolling.fences.model_copy(update={"as_of_ms": at_ms - round(1000 * self._behind)})
        rolling = rolling.model_copy(update={"fences": fences, "by": self._by})
        return proofs.proven(JOURNAL, results={"catch_up": result}, rolling_proof=rolling.model_dump(mode="json"))

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def time(self) -> float:
        return CUTOVER_MS / 1000 + self.seconds


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return how many seconds the cutover waits for a driver. Its error is raised."""

    def wait(driver: Driver) -> float:
        clock = SimpleNamespace(sleep=driver.sleep, monotonic=lambda: driver.seconds, time=driver.time)
        monkeypatch.setattr("kafka_rescale.kafka.client.waiting.time", clock)
        rescale: Any = SimpleNamespace(control=driver)
        await_near_proof(rescale, JOURNAL)
        return driver.seconds

    monkeypatch.setattr(proven, "needs_proof", lambda _: True)
    return wait


@pytest.mark.parametrize("ahead", [0, -31, -3600, 3600])
def test_a_comparison_that_is_near_is_near_whatever_its_machine_takes_for_the_time(
    waited: Any, ahead: float
) -> None:
    assert waited(Driver(ahead_seconds=ahead)) < 5


@pytest.mark.parametrize("ahead", [0, -3600, 3600])
def test_one_that_is_behind_is_behind(waited: Any, ahead: float) -> None:
    driver = Driver(ahead_seconds=ahead, behind_seconds=NEAR_SECONDS)
    with pytest.raises(Outage, match=r"the catch_up job to compare what shop has written up to 30 s ago"):
        waited(driver)
    assert driver.seconds >= WAITED_SECONDS


def test_the_report_of_a_job_that_has_died_before_does_not_count(waited: Any) -> None:
    with pytest.raises(Outage, match="the catch_up job to compare"):
        waited(Driver(dies_at=0))


def test_a_next_try_that_has_not_reported_yet_tells_nothing(waited: Any) -> None:
    with pytest.raises(Outage, match="the catch_up job to compare"):
        waited(Driver(behind_seconds=3600, dies_at=10, next_try=20))


@pytest.mark.parametrize("ahead", [0, 3600])
def test_what_an_earlier_try_has_compared_is_not_dated_by_the_clock_of_the_next(waited: Any, ahead: float) -> None:
    with pytest.raises(Outage, match="the catch_up job to compare"):
        waited(Driver(ahead_seconds=ahead, behind_seconds=1800, dies_at=10, next_try=20, next_reports=30))


def test_a_driver_of_an_earlier_version_is_believed(waited: Any) -> None:
    """It may outlive the upgrade, since an expansion goes on behind one."""
    assert waited(Driver(names_itself=False)) < 5
