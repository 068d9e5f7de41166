"""A person's word about the pace is noted in one compare-and-set, or refused with the remaining way."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.pacing_say import LIMIT, PAUSE, RESUME
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.values import per_second
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.kafka.control import lease as leases
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion import pace as operation
from kafka_rescale.operations.expansion import switch

from tests.support.application_files import CHAIN
from tests.support.plans import IN_PLACE_TOPICS, in_place_plan

NOON = 1_795_608_000_000
HOUR = 3_600_000
CONNECTION: Any = None


class Control:
    """The control topic of a test."""

    application = "orders-app"

    def __init__(self, state: ControlState) -> None:
        self.state, self.writes = state, 0

    def __call__(self, *_: object) -> Control:
        return self

    def read(self) -> ControlState:
        return self.state

    def update(self, change: Callable[[ControlState], Any]) -> ControlState:
        changes = {str(key): value for key, value in change(self.state).items()}
        self.writes += bool(changes)
        self.state = self.state.model_copy(update=changes)
        return self.state


def app(**changes: Any) -> Application:
    return Application.model_validate({**CHAIN, **changes})


def planned() -> Plan:
    counts = {f"orders-app-{name}": 4 for name in IN_PLACE_TOPICS} | {"orders": 4, "totals": 4}
    application = app()
    topology = topology_of(application)
    return build_plan(application, topology, blue="orders-app", generation=2, current=counts, target=8)


PLAN = planned()


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    made = Control(ControlState(journal=Journal(plan=PLAN)))
    compacted = {"cleanup.policy": "compact", "delete.retention.ms": str(2 * HOUR)}

    def describe(topics: list[str]) -> dict[str, TopicDescription]:
        return {topic: TopicDescription(topic, 4, 1, compacted) for topic in topics}

    monkeypatch.setattr(operation, "ControlTopic", made)
    monkeypatch.setattr(operation, "now_ms", lambda: NOON)
    monkeypatch.setattr(switch, "ClusterAdmin", lambda _: SimpleNamespace(describe_topics=describe))
    monkeypatch.setattr(leases, "FIRST_PAUSE_SECONDS", 0)
    return made


def say(action: str, limit: int | None = None, by: str = "ada", reason: str = "") -> str:
    return operation.say_pace(app(), CONNECTION, action, by=by, bytes_per_second=limit, reason=reason)


def at(control: Control, **changes: Any) -> None:
    control.state = control.state.model_copy(update=changes)


def test_a_limit_is_said_with_its_person_and_lifted_again(control: Control) -> None:
    assert (
        say(LIMIT, 50_000_000, reason="peak hour") == "The pace: at most 50.0 MB/s: ada has said so (peak hour)."
    )
    assert say(LIMIT, by="bob") == "The pace: no limit: bob has said so."
    assert control.writes == 2


def test_a_pause_says_who_since_when_and_what_it_may_cost_and_resume_ends_it(control: Control) -> None:
    said = say(PAUSE, reason="sale")
    assert said.startswith("The copy is paused by ada since Wed 25 Nov 2026 12:00 UTC (sale). `resume` lets it go")
    assert "paused for 2 h (`delete.retention.ms`), copies begin anew" in said
    assert say(RESUME, by="bob") == "Nothing limits the copy."
    assert control.state.pace is not None
    assert (control.state.pace.paused, control.state.pace.resumed) == (None, Instruction(by="bob", at_ms=NOON))
    say(PAUSE)
    assert control.state.pace.resumed is None


def test_a_copy_that_goes_on_is_not_resumed(control: Control) -> None:
    """What was never interrupted has no moment from which on it goes on."""
    say(LIMIT, 7)
    say(RESUME)
    assert control.state.pace is not None
    assert control.state.pace.resumed is None
    assert "resumed" not in control.state.pace.model_dump()


def test_a_second_pause_and_a_second_resume_change_nothing(control: Control) -> None:
    say(PAUSE)
    say(PAUSE, by="bob")
    assert control.state.pace is not None
    assert control.state.pace.paused == Instruction(by="ada", at_ms=NOON)
    say(RESUME)
    say(RESUME)
    assert control.writes == 2


def test_a_limit_leaves_the_pause_as_it_is(control: Control) -> None:
    say(PAUSE)
    say(LIMIT, 7, by="bob")
    assert control.state.pace is not None
    assert control.state.pace.paused is not None
    assert control.state.pace.paused.by == "ada"


@pytest.mark.parametrize("action", [LIMIT, PAUSE, RESUME])
@pytest.mark.parametrize(
    ("journal", "found"),
    [
        (None, "no expansion"),
        (Journal(plan=PLAN, phase=Phase.ROLLED_BACK), "nothing to copy, phase rolled_back"),
        (Journal(plan=PLAN, phase=Phase.COMPLETE), "nothing to copy, phase complete"),
        (Journal(plan=in_place_plan()), "an expansion in place"),
    ],
)
def test_it_is_refused_where_nothing_is_copied(
    control: Control, journal: Journal | None, found: str, action: str
) -> None:
    at(control, journal=journal)
    with pytest.raises(Refused, match=found):
        say(action)
    assert control.writes == 0


@pytest.mark.parametrize("phase", [*BLUE_STOPPED, Phase.PROMOTED])
def test_no_pause_while_the_application_is_stopped(control: Control, phase: Phase) -> None:
    bridged = Journal(plan=PLAN, phase=phase)
    at(control, journal=bridged)
    with pytest.raises(Refused, match="nothing to copy" if bridged.is_promoted else "only speed matters"):
        say(PAUSE)


def test_no_pause_of_a_cutover_that_has_been_let_through(control: Control) -> None:
    at(control, switch=Switch(plan=PLAN.fingerprint, attempt=1, since_ms=1, released_ms=NOON))
    with pytest.raises(Refused, match="found a cutover that has been let through"):
        say(PAUSE)
    say(LIMIT, 7)


def test_a_bridge_may_be_paused_once_the_next_generation_works_until_it_has_ended(control: Control) -> None:
    stage = PLAN.stages[0]
    plan = PLAN.model_copy(update={"stages": (stage.model_copy(update={"bridges": stage.moves}),)})
    stopped = Journal(plan=plan, phase=Phase.PROMOTED)
    at(control, journal=stopped)
    with pytest.raises(Refused, match="found a stopped application, phase promoted"):
        say(PAUSE)
    at(control, journal=stopped.model_copy(update={"phase": Phase.COMPLETE, "timings": {"total": 1.0}}))
    assert "paused by ada" in say(PAUSE)
    at(control, bridge=Bridge(plan=plan.fingerprint, ended_at_ms=1))
    with pytest.raises(Refused, match="nothing to copy, phase complete"):
        say(PAUSE)


@pytest.mark.parametrize("has_bridge", [False, True], ids=["no bridge", "a bridge"])
@pytest.mark.parametrize("phase", Phase)
def test_no_sentence_about_a_pause_names_a_word_that_is_refused(
    control: Control, phase: Phase, has_bridge: bool
) -> None:
    """The pause holds for all attempts at the plan, so it outlasts what it has stopped."""
    stage = PLAN.stages[0]
    bridges = stage.moves if has_bridge else ()
    plan = PLAN.model_copy(update={"stages": (stage.model_copy(update={"bridges": bridges}),)})
    pause = Pace(plan=plan.fingerprint, paused=Instruction(by="ada", at_ms=NOON), limit=7, tombstone_ms=HOUR)
    at(control, journal=Journal(plan=plan, phase=phase), pace=pause)
    told = told_pace(control.state)
    if phase is Phase.ROLLED_BACK:
        assert told.startswith("The copy is paused by ada since Wed 25 Nov 2026 12:00 UTC, and the next run of it")
        assert "begins paused: `resume` it then. The pace" in told
        assert told.endswith("The pace: at most 7 B/s: the application file.")
    if "`resume` lets it go on" in told:
        say(RESUME)
    else:
        with pytest.raises(Refused, match="nothing to copy"):
            say(RESUME)
        assert phase is Phase.ROLLED_BACK or told == ""


def test_a_pause_of_another_plan_says_nothing_of_this_one(control: Control) -> None:
    at(control, pace=Pace(plan="other", paused=Instruction(by="eve", at_ms=1)))
    assert told_pace(control.state) == ""
    assert say(LIMIT, 1_000) == "The pace: at most 1.0 kB/s: ada has said so."


def test_the_switch_waits_while_the_copy_is_paused(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "ControlTopic", control)
    monkeypatch.setattr(switch, "require_owner", lambda *_: None)
    monkeypatch.setattr(switch, "renewed", lambda *_: None)
    say(PAUSE)
    answer = switch.let_through(app(), CONNECTION, owner="r")
    assert not answer.passes
    assert answer.told.startswith("The switch waits: the copy is paused by ada since Wed 25 Nov")
    say(RESUME)
    assert switch.let_through(app(), CONNECTION, owner="r").passes


def test_the_switch_waits_while_the_copy_rests_for_a_disk(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "ControlTopic", control)
    monkeypatch.setattr(switch, "require_owner", lambda *_: None)
    monkeypatch.setattr(switch, "renewed", lambda *_: None)
    rest = DiskRest(broker=3, path="/d", usable=1, copied=90, percent=10, enough=11, since_ms=NOON)
    rate = Rate(run="r", attempt=1, at_ms=now_ms(), disk=rest, is_paused=True)
    result = JobResult(job="catch_up", run="r", attempt=1, state="running")
    at(control, results={"catch_up": result}, rates={"catch_up": rate})
    answer = switch.let_through(app(), CONNECTION, owner="r")
    assert not answer.passes
    assert answer.told.startswith("The switch waits: the copy is at rest since Wed 25 Nov 2026 12:00 UTC: log dir")
    assert "`resume`" not in answer.told
    at(control, rates={"catch_up": rate.model_copy(update={"disk": None})})
    assert switch.let_through(app(), CONNECTION, owner="r").passes


class TestTheFile:
    """An expansion begins with the limit of the application file."""

    def begun(self, control: Control, pacing: Any, free_disk_percent: int | None = 10) -> Pace | None:
        file = app(pacing=pacing, free_disk_percent=free_disk_percent)
        told = {"pacing": file.pacing, "free_disk_percent": file.free_disk_percent}
        journal_store.begin(control, PLAN, "r", NOON, **told)  # type: ignore[arg-type]
        return control.state.pace

    def test_its_limit_holds_from_the_beginning(self, control: Control) -> None:
        assert self.begun(control, None) is None
        found = self.begun(control, {"bytes_per_second": 10})
        assert found == Pace(plan=PLAN.fingerprint, limit=10)
        assert told_pace(control.state) == "The pace: at most 10 B/s: the application file."

    def test_a_person_counts_more_also_in_the_next_run_of_the_same_plan(self, control: Control) -> None:
        say(LIMIT, 20)
        found = self.begun(control, {"bytes_per_second": 10})
        assert found is not None
        assert found.limit == 20

    @pytest.mark.parametrize("percent", [20, None])
    def test_its_free_disk_percent_holds_whatever_a_person_has_said_about_the_limit(
        self, control: Control, percent: int | None
    ) -> None:
        assert self.begun(control, None, percent) == Pace(plan=PLAN.fingerprint, free_disk_percent=percent)
        say(LIMIT, 20)
        say(PAUSE)
        found = self.begun(control, None)
        assert found is not None
        assert (found.free_disk_percent, found.limit, found.paused is not None) == (10, 20, True)

    def test_another_plan_begins_with_the_file_again(self, control: Control) -> None:
        at(control, journal=None, pace=Pace(plan="other", limit=20, paused=Instruction(by="eve", at_ms=1)))
        assert self.begun(control, None) == Pace(plan=PLAN.fingerprint)


class TestWhatIsTold:
    """The rate of each running job is shown beside the limit. Unknown rates are left out."""

    def told(self, rate: Rate | None, state: str = "running") -> str:
        result = JobResult(job="restore/1", run="r", attempt=2, state=state)
        return told_pace(
            ControlState(
                journal=Journal(plan=PLAN),
                pace=Pace(plan=PLAN.fingerprint, limit=2_000_000),
                results={"restore/1": result},
                rates={"restore/1": rate} if rate else {},
            )
        )

    def test_a_slowed_job_says_why(self) -> None:
        slow = Rate(run="r", attempt=2, limit=2_000_000, bytes_per_second=500_000, slowed_by="brokers wait")
        assert self.told(slow).endswith("restore/1: It may use 500.0 kB/s of 2.0 MB/s: brokers wait.")

    def test_what_the_driver_could_not_read_is_said(self) -> None:
        known = Rate(run="r", attempt=2, limit=1, bytes_per_second=1, unknown=("replicas in sync",))
        assert self.told(known).endswith("may use its limit, 1 B/s (not known: replicas in sync).")

    @pytest.mark.parametrize("rate", [None, Rate(run="r", attempt=1, bytes_per_second=0)])
    def test_a_rate_that_is_not_known_is_not_shown_as_0(self, rate: Rate | None) -> None:
        assert self.told(rate) == "The pace: at most 2.0 MB/s: the application file."

    def test_a_job_that_is_over_has_none(self) -> None:
        assert "restore" not in self.told(Rate(run="r", attempt=2, bytes_per_second=1), "done")


@pytest.mark.parametrize(("count", "said"), [(999, "999 B/s"), (1_000, "1.0 kB/s"), (2.5e9, "2.5 GB/s")])
def test_a_rate_can_be_read(count: float, said: str) -> None:
    assert per_second(count) == said
