"""What the test bed's client of Airflow's API waits for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed import airflow_api
from testbed.airflow_api import TRIES, AirflowApi, AirflowApiError
from testbed.airflow_client import PARTS, AirflowClient


class ParsesLate(AirflowClient):
    """An Airflow that knows one more DAG each time it is asked for all DAGs.

    It refuses to trigger DAGs it does not know.
    """

    def __init__(self, *dag_ids: str) -> None:
        super().__init__("http://nobody", Path("no log"), token="t")
        self._unparsed, self._parsed = list(dag_ids), [""]
        self.asked: list[tuple[str, str]] = []

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        self.asked.append((method, path))
        if path.startswith("/dags?"):
            self._parsed.extend(self._unparsed[:1])
            del self._unparsed[:1]
            return {"dags": [{"dag_id": each} for each in self._parsed]}
        assert path.split("/")[2] in self._parsed
        return {"dag_run_id": "run-1"}


def test_a_dag_whose_file_is_parsed_after_others_is_triggered_then() -> None:
    airflow = ParsesLate("retire_shop", "expand_shop")
    assert airflow.trigger("expand_shop") == "run-1"
    assert ("POST", "/dags/expand_shop/dagRuns") in airflow.asked


def test_a_dag_that_never_appears_is_named() -> None:
    with pytest.raises(TimeoutError, match="DAG expand_stop to be parsed"):
        ParsesLate("expand_shop").await_dag("expand_stop", timeout=0.01)


class HasLostItsTriggerer(AirflowClient):
    """An Airflow that goes on without its triggerer, which resumes deferred tasks."""

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return {part: {"status": "unhealthy" if part == "triggerer" else "healthy"} for part in PARTS}


def test_a_wait_in_vain_names_the_part_that_has_ended_and_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "airflow.log"
    log.write_text("triggerer | all is well\ntriggerer | Exception when executing: database is locked\n")
    airflow = HasLostItsTriggerer("http://nobody", log, token="t")
    with pytest.raises(TimeoutError) as told:
        airflow.wait(lambda: False, "a run", 0.01)
    assert "waiting for a run. metadatabase: healthy" in str(told.value)
    assert "triggerer: unhealthy" in str(told.value)
    assert "all is well" not in str(told.value)
    assert str(told.value).endswith("database is locked")


HEARD = (
    "scheduler  | 2026-11-25T10:00:00Z [info     ] Received executor event with state success for task instance "
    "TaskInstanceKey(dag_id='expand_shop', task_id='approve_plan', run_id='run-1', try_number={}, map_index=-1)\n"
)


class AsksAgain(AirflowClient):
    """An Airflow that fails a try if its answer comes before the scheduler knows that the try is parked."""

    def __init__(self, log: Path) -> None:
        super().__init__("http://nobody", log, token="t")
        self._log, self._try, self._state, self._looked = log, 1, "awaiting_input", 0
        self.answered: list[int] = []

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if method == "PATCH":
            heard = HEARD.format(self._try) in self._log.read_text()
            self.answered.append(self._try)
            self._state, self._try = ("success", self._try) if heard else ("awaiting_input", self._try + 1)
            return {}
        if path.endswith("/hitlDetails"):
            return {"response_received": False}
        self._looked += 1
        if self._looked == 2:
            with self._log.open("a") as log:
                log.write(HEARD.format(self._try))
        return {"state": self._state, "try_number": self._try}


def test_an_approval_waits_until_the_scheduler_has_heard_of_this_very_try(tmp_path: Path) -> None:
    log = tmp_path / "airflow.log"
    log.write_text(HEARD.format(7))
    airflow = AsksAgain(log)
    airflow.approve("expand_shop", "run-1", "approve_plan")
    assert airflow.answered == [1]


class AnswersLate(AirflowApi):
    """An API that answers some requests with an error, and then answers."""

    def __init__(self, error: AirflowApiError, times: int) -> None:
        super().__init__("http://nobody", token="t")
        self._error, self._left = error, times
        self.asked = 0

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        self.asked += 1
        if self.asked <= self._left:
            raise self._error
        return "answer"


LOCKED = [
    AirflowApiError(503, "database is locked"),
    AirflowApiError(500, '{"detail":{"reason":"Database error","statement":"hidden"}}'),
]


@pytest.mark.parametrize("error", LOCKED, ids=lambda error: str(error.status))
def test_a_locked_database_is_asked_again_but_not_for_ever(
    error: AirflowApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow_api, "PAUSE_SECONDS", 0)
    assert AnswersLate(error, TRIES - 1).request("POST", "/dags/expand_shop/dagRuns") == "answer"
    locked = AnswersLate(error, TRIES)
    with pytest.raises(AirflowApiError):
        locked.request("POST", "/dags/expand_shop/dagRuns")
    assert locked.asked == TRIES


@pytest.mark.parametrize("error", [AirflowApiError(500, "Internal Server Error"), AirflowApiError(409, "exists")])
def test_any_other_error_is_not_asked_again(error: AirflowApiError) -> None:
    refused = AnswersLate(error, TRIES)
    with pytest.raises(AirflowApiError):
        refused.request("POST", "/dags/expand_shop/dagRuns")
    assert refused.asked == 1
