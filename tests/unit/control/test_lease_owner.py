"""Whether the run that holds a lease has ended: known, deleted, of another Airflow, or without an answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DagRunState, Variable
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from kafka_rescale.airflow.operators.admin import PlanOperator
from kafka_rescale.airflow.runs import ID_VARIABLE, airflow_id, airflow_of, owner_is_finished
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, LeaseHeld
from kafka_rescale.kafka.control import lease
from kafka_rescale.operations.expansion import begin as beginning
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back

from tests.support.application_files import CHAIN
from tests.support.expansion.growing_world import OWNER, GrowingWorld
from tests.support.plans import in_place_application, plan_for

OURS, THEIRS = "0a", "0b"
DAY_MS = 24 * 3600 * 1000


def held(owner: str = "expand_x/manual__a/b", airflow: str = OURS) -> Lease:
    return Lease(owner=owner, epoch=1, target=8, expires_at_ms=DAY_MS, airflow=airflow)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A stand-in for Airflow's Variables."""
    known = {ID_VARIABLE: OURS}
    monkeypatch.setattr(Variable, "get", classmethod(lambda _, key, default: known.get(key, default)))
    monkeypatch.setattr(
        Variable, "set", classmethod(lambda _, key, value, description: known.update({key: value}))
    )
    monkeypatch.setattr(
        Variable, "keys", classmethod(lambda _, prefix: [k for k in known if k.startswith(prefix)])
    )
    return known


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> Callable[[str], None]:
    """Set what Airflow's API answers about the run: a state, ``deleted``, or ``no answer``."""

    def answers(known: str) -> None:
        def answer(dag_id: str, run_id: str) -> DagRunState:
            assert (dag_id, run_id) == ("expand_x", "manual__a/b")
            return DagRunState(known)

        def count(dag_id: str, run_ids: list[str]) -> int:
            if known == "no answer":
                raise RuntimeError("API server unreachable")
            return 0 if known == "deleted" else 1

        monkeypatch.setattr(RuntimeTaskInstance, "get_dr_count", staticmethod(count))
        monkeypatch.setattr(RuntimeTaskInstance, "get_dagrun_state", staticmethod(answer))

    return answers


@pytest.mark.parametrize(
    ("known", "finished"),
    [("success", True), ("failed", True), ("running", False), ("queued", False), ("deleted", True)],
)
def test_a_run_of_this_airflow_has_finished_when_it_has_ended_or_was_deleted(
    airflow: Callable[[str], None], known: str, finished: bool
) -> None:
    airflow(known)
    assert owner_is_finished(held()) is finished


def test_an_api_that_does_not_answer_tells_nothing(airflow: Callable[[str], None]) -> None:
    airflow("no answer")
    assert owner_is_finished(held()) is None


@pytest.mark.parametrize("other", [THEIRS, ""], ids=["another Airflow's", "taken by an older version"])
def test_a_run_that_another_airflow_may_have_is_not_missed(airflow: Callable[[str], None], other: str) -> None:
    airflow("deleted")
    assert owner_is_finished(held(airflow=other)) is None


@pytest.mark.parametrize("known", ["running", "success", "failed", "deleted"])
def test_a_run_of_the_same_name_in_this_airflow_says_nothing_about_one_of_another(
    airflow: Callable[[str], None], known: str
) -> None:
    airflow(known)
    assert owner_is_finished(held(airflow=THEIRS)) is None


def test_a_run_that_is_missing_tells_nothing_to_an_airflow_without_an_identity(
    airflow: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise RuntimeError("API server unreachable")

    airflow("deleted")
    monkeypatch.setattr(Variable, "get", unreachable)
    assert airflow_id() == ""
    assert owner_is_finished(held()) is None
    assert owner_is_finished(held(airflow="")) is None


def test_a_shell_that_owns_the_lease_is_not_asked_for_in_airflow() -> None:
    assert owner_is_finished(held("shell/host/123")) is None


def test_an_airflow_gets_an_identity_once(variables: dict[str, str]) -> None:
    assert airflow_id() == OURS
    del variables[ID_VARIABLE]
    made = airflow_id()
    assert made not in {"", OURS}
    assert airflow_id() == made == variables[ID_VARIABLE]


@pytest.mark.parametrize("answers", [pytest.param(True, id="for-a-moment"), pytest.param(False, id="with-all")])
def test_while_its_api_fails_an_airflow_gets_no_other_identity(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise RuntimeError("API server unreachable")

    monkeypatch.setattr(Variable, "get", classmethod(lambda _, key, default: default))
    if not answers:
        monkeypatch.setattr(Variable, "keys", unreachable)
    assert airflow_id() == ""
    assert variables == {ID_VARIABLE: OURS}


def test_a_run_keeps_the_identity_with_which_it_has_begun(variables: dict[str, str]) -> None:
    task = SimpleNamespace(xcom_pull=lambda task_ids, key: {("plan", "airflow"): THEIRS}.get((task_ids, key)))
    del variables[ID_VARIABLE]
    assert airflow_of({"ti": task}) == THEIRS


@pytest.mark.usefixtures("variables")
def test_before_it_has_begun_a_run_has_the_identity_of_its_airflow() -> None:
    assert airflow_of({"ti": SimpleNamespace(xcom_pull=lambda **_: None)}) == OURS
    assert airflow_of({}) == OURS


def test_a_run_of_this_airflow_takes_the_lease_with_its_identity(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(beginning, "begin", lambda *_, **arguments: told.update(arguments))
    monkeypatch.setattr(PlanOperator, "application", lambda _: Application.model_validate(CHAIN))
    monkeypatch.setattr(PlanOperator, "connection", lambda *_: None)
    found = {"plan": plan_for("shop").model_dump(mode="json"), "noop": False, "messages": []}
    ti = SimpleNamespace(xcom_pull=lambda task_ids: found, xcom_push=lambda **_: None)
    run = SimpleNamespace(dag_id="expand_shop", run_id="r")
    task = PlanOperator(task_id="plan", application_file="x.yaml", only_show=False)
    task.execute({"ti": ti, "dag_run": run, "params": {}})  # type: ignore[arg-type,typeddict-item]
    assert (told["owner"], told["airflow"]) == ("expand_shop/r", OURS)


def test_the_lease_of_a_deleted_run_is_free_at_once_and_of_an_unknown_one_after_its_end(
    airflow: Callable[[str], None],
) -> None:
    def taken(now_ms: int) -> Lease | None:
        states = [ControlState(lease=held())]

        def update(change: Any) -> ControlState:
            return states[0].model_copy(update={str(k): v for k, v in change(states[0]).items()})

        control: Any = SimpleNamespace(application="shop", update=update)
        return lease.acquire(control, "expand_x/c", 8, now_ms, DAY_MS, owner_is_finished, airflow=OURS).lease

    airflow("deleted")
    assert taken(now_ms=1) == Lease(owner="expand_x/c", epoch=2, target=8, expires_at_ms=DAY_MS + 1, airflow=OURS)
    airflow("no answer")
    with pytest.raises(LeaseHeld):
        taken(now_ms=DAY_MS - 1)
    assert taken(now_ms=DAY_MS) is not None


class TestRunsOfOneName:
    """``scheduled__<date>`` and ``autoscaling__1__to_8`` are names of runs in every Airflow with the same DAGs."""

    NAME = "expand_shop/scheduled__2026"

    def taken(self, found: Lease, airflow: str, now_ms: int = 1) -> Lease | None:
        control: Any = SimpleNamespace(
            application="shop",
            update=lambda change: ControlState(lease=change(ControlState(lease=found))["lease"]),
        )
        unknown = lambda _: None  # noqa: E731
        return lease.acquire(control, self.NAME, 8, now_ms, DAY_MS, unknown, airflow=airflow).lease

    def test_that_of_another_airflow_keeps_the_lease_until_it_expires_and_both_are_named(self) -> None:
        theirs = held(self.NAME, THEIRS)
        with pytest.raises(
            LeaseHeld, match=f"{self.NAME} of Airflow {THEIRS}, while this is Airflow {OURS}, that"
        ):
            self.taken(theirs, OURS)
        after = self.taken(theirs, OURS, now_ms=DAY_MS)
        assert after is not None
        assert (after.airflow, after.epoch) == (OURS, 2), "another holder, and not the same one again"

    def test_preflight_refuses_it_as_early(self) -> None:
        theirs = ControlState(lease=held(self.NAME, THEIRS))
        with pytest.raises(LeaseHeld):
            lease.refuse_if_held("shop", theirs, self.NAME, 1, lambda _: None, OURS)
        lease.refuse_if_held("shop", theirs, self.NAME, 1, lambda _: None, THEIRS)

    @pytest.mark.parametrize(
        ("phase", "said"),
        [
            (None, ""),
            (Phase.COMPLETE, ""),
            (Phase.WARMING, ", with an expansion in phase warming"),
            (Phase.QUIESCING, ", with an expansion in phase quiescing"),
        ],
    )
    def test_who_is_refused_hears_of_the_run_its_target_its_phase_and_where_to_look(
        self, phase: Phase | None, said: str
    ) -> None:
        journal = None if phase is None else Journal(plan=plan_for("shop"), phase=phase)
        state = ControlState(lease=held(self.NAME), journal=journal)
        with pytest.raises(LeaseHeld) as refused:
            lease.refuse_if_held("shop", state, "shell/host/1", 1, lambda _: False)
        assert str(refused.value) == (
            f"application 'shop': found a rescale to 8 partitions by {self.NAME} that has not ended{said}; "
            f"expected no other rescale of it. Wait for {self.NAME}, or stop it; `python -m kafka_rescale status "
            "FILE` shows what it does."
        )

    @pytest.mark.parametrize(("held_in", "asked_in"), [(OURS, OURS), ("", OURS), (THEIRS, "")])
    def test_one_that_comes_back_or_whose_airflow_is_unknown_keeps_it(self, held_in: str, asked_in: str) -> None:
        again = self.taken(held(self.NAME, held_in), asked_in)
        assert again is not None
        assert (again.epoch, again.airflow) == (1, asked_in or held_in)

    @pytest.mark.parametrize(("airflow", "passes"), [(OURS, True), ("", True), (THEIRS, False)])
    def test_a_later_step_of_another_airflow_is_no_owner(self, airflow: str, passes: bool) -> None:
        world = GrowingWorld()
        assert world.state.lease is not None
        ours = world.state.lease.model_copy(update={"airflow": OURS})
        world.state = world.state.model_copy(update={"lease": ours})
        rescale = replace(world.rescale, airflow=airflow)
        with nullcontext() if passes else pytest.raises(Fenced, match=f"of Airflow {OURS}; expected .* {THEIRS}"):
            rescale.advance(Phase.QUIESCING)
        assert world.journal.phase is (Phase.QUIESCING if passes else Phase.WARMING)

    def test_the_failed_run_of_another_airflow_does_not_roll_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its preflight was refused. Its task ``roll_back`` must leave alone what goes on."""
        world = GrowingWorld()
        assert world.state.lease is not None
        ours = world.state.lease.model_copy(update={"airflow": OURS})
        world.state = world.state.model_copy(update={"lease": ours})
        monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
        nobody: Any = None
        said = roll_back(in_place_application(), nobody, owner=OWNER, reason="it has failed", airflow=THEIRS)
        assert (said.is_done, world.journal.phase) == (False, Phase.WARMING)
