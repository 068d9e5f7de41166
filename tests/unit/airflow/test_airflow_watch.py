"""The watch's task: what it reports, raises, skips and pushes. And what Airflow knows of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DagRunState
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.observability import stats
from kafka_rescale.airflow.operators.watch import WatchOperator
from kafka_rescale.airflow.runs import run_state
from kafka_rescale.core.autoscaling.decision import Decision, Outcome, RunState, Trigger
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.errors import Refused
from kafka_rescale.operations import watch as operation
from kafka_rescale.operations.watch import Watched

from tests.support.small_application import write

OBSERVED = Observed("shop", {}, parallelism=(Parallelism(0, 4, 8), Parallelism(1, 4, 4)))
RECORD = Autoscaling(failures=3)
ERROR = Refused("shop", found="a", expected="b", remedy="c")


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, dict[str, str]]]:
    """The reported gauges: value and tags by the metric's name."""
    found: dict[str, tuple[float, dict[str, str]]] = {}
    monkeypatch.setattr(stats, "gauge", lambda name, value, tags: found.update({name: (value, tags)}))
    return found


def executed(
    monkeypatch: pytest.MonkeyPatch, directory: Path, decision: Decision, *, enabled: bool = True
) -> tuple[Any, list[str], dict[str, Any]]:
    """Execute the task of a look with a given decision. Return its result, what it skips, and what it pushes."""
    file = write(directory, "shop", **{"partition.autoscaling.enabled": enabled})
    monkeypatch.setattr(operation, "watch", lambda *_, **__: Watched(OBSERVED, decision))
    monkeypatch.setattr(WatchOperator, "connection", lambda *_: None)
    skipped: list[str] = []
    monkeypatch.setattr(WatchOperator, "skip", lambda _, ti, tasks: skipped.extend(tasks))
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(try_number=1, xcom_push=lambda key, value: pushed.update({key: value}))
    task = SimpleNamespace(get_flat_relatives=lambda upstream: ["expand"])
    context: Any = {"dag_run": SimpleNamespace(dag_id="watch_shop", run_id="r"), "ti": ti, "task": task}
    return WatchOperator(task_id="watch", application_file=str(file)).execute(context), skipped, pushed


def test_an_expansion_to_trigger_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gauges: dict[str, Any]
) -> None:
    trigger = Trigger("autoscaling__1__to_8", 8, approval=True)
    decision = Decision(Outcome.TRIGGER, "grown", RECORD, trigger)
    found, skipped, _ = executed(monkeypatch, tmp_path, decision)
    assert (found["run_id"], found["target"], found["approval"]) == ("autoscaling__1__to_8", 8, True)
    assert skipped == []


@pytest.mark.parametrize("outcome", [Outcome.IN_LINE, Outcome.HELD, Outcome.GAVE_UP, Outcome.ERROR])
def test_whatever_else_comes_of_it_triggers_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gauges: dict[str, Any], outcome: Outcome
) -> None:
    found, skipped, pushed = executed(monkeypatch, tmp_path, Decision(outcome, "why", RECORD))
    assert skipped == ["expand"]
    assert found == pushed["return_value"] == {"outcome": outcome.value, "reason": "why"}


def test_an_error_fails_the_task_after_the_metrics_were_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gauges: dict[str, Any]
) -> None:
    decision = Decision(Outcome.ERROR, "why", RECORD, error=ERROR)
    with pytest.raises(Refused, match="shop: found a"):
        executed(monkeypatch, tmp_path, decision)
    assert gauges


@pytest.mark.parametrize(
    ("outcome", "leaves_down", "level"),
    [
        (Outcome.IN_LINE, False, "info"),
        (Outcome.HELD, False, "info"),
        (Outcome.HELD, True, "warning"),
        (Outcome.GAVE_UP, False, "warning"),
    ],
)
def test_it_warns_when_it_has_given_up_and_while_the_application_is_down(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    gauges: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    outcome: Outcome,
    leaves_down: bool,
    level: str,
) -> None:
    executed(monkeypatch, tmp_path, Decision(outcome, "the reason", RECORD, leaves_down=leaves_down))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "the reason" in line)
    assert f"[{level} " in line


def test_the_three_metrics_have_the_names_and_tags_of_the_kip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gauges: dict[str, Any]
) -> None:
    executed(monkeypatch, tmp_path, Decision(Outcome.IN_LINE, "why", RECORD))
    group, tags = "stream-subtopology-metrics.shop", {"application-id": "shop"}
    assert gauges == {
        f"{group}.0.current-subtopology-parallelism": (4, {**tags, "subtopology-id": "0"}),
        f"{group}.0.expected-subtopology-parallelism": (8, {**tags, "subtopology-id": "0"}),
        f"{group}.1.current-subtopology-parallelism": (4, {**tags, "subtopology-id": "1"}),
        f"{group}.1.expected-subtopology-parallelism": (4, {**tags, "subtopology-id": "1"}),
        "stream-client-metrics.shop.num-autoscaling-failures": (3, {"client-id": "shop"}),
    }


def test_with_the_feature_off_only_the_present_parallelism_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gauges: dict[str, Any]
) -> None:
    executed(monkeypatch, tmp_path, Decision(Outcome.IN_LINE, "why", RECORD), enabled=False)
    assert {name.rpartition(".")[2] for name in gauges} == {"current-subtopology-parallelism"}


def test_the_metrics_are_gauges_of_airflows_own_stats() -> None:
    """They go through Airflow's configured backend, which would silently drop a name that it refuses."""
    seen: list[tuple[str, float]] = []
    backend = SimpleNamespace(gauge=lambda stat, value, *_, **__: seen.append((stat, value)))
    name = "stream-subtopology-metrics.shop.0.current-subtopology-parallelism"
    before = stats.initialize.__globals__["_factory"]
    try:
        stats.initialize(factory=lambda: backend, export_legacy_names=False)
        stats.gauge(name, 4, tags={"application-id": "shop", "subtopology-id": "0"})
    finally:
        stats.initialize(factory=before, export_legacy_names=True)
    assert seen == [(name, 4)]
    assert stats.normalize_name_for_stats(name) == name


@pytest.mark.parametrize(
    ("count", "state", "known"),
    [
        (0, None, RunState.ABSENT),
        (1, DagRunState.QUEUED, RunState.RUNNING),
        (1, DagRunState.RUNNING, RunState.RUNNING),
        (1, DagRunState.SUCCESS, RunState.SUCCESS),
        (1, DagRunState.FAILED, RunState.FAILED),
        (1, None, RunState.UNKNOWN),
    ],
)
def test_what_airflow_knows_of_a_run(
    monkeypatch: pytest.MonkeyPatch, count: int, state: DagRunState | None, known: RunState
) -> None:
    def answer(dag_id: str, run_id: str) -> DagRunState:
        assert (dag_id, run_id) == ("expand_x", "a/b")
        if state is None:
            raise RuntimeError("no answer")
        return state

    monkeypatch.setattr(RuntimeTaskInstance, "get_dr_count", staticmethod(lambda dag_id, run_ids: count))
    monkeypatch.setattr(RuntimeTaskInstance, "get_dagrun_state", staticmethod(answer))
    assert run_state("expand_x/a/b") is known
