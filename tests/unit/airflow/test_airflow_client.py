"""What the client of Airflow's API waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from testbed.airflow_api import TRIES, AirflowApi, AirflowApiError
from testbed.airflow_client import AirflowClient


class ParsesLate(AirflowClient):
    """An Airflow which knows one DAG more each time it is asked for all, and refuses to trigger others."""

    def __init__(self, *dag_ids: str) -> None:
        super().__init__("http://nobody", token="t")
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


class AnswersLate(AirflowApi):
    """An API that answers some requests with an error before it answers."""

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
def test_a_locked_database_is_asked_again_but_not_for_ever(error: AirflowApiError) -> None:
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
