"""Misrouted records that a person has accepted: the report names them, and never more than the accepted ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.dags.maintenance import accept_dag
from kafka_rescale.airflow.operators import closing
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.acceptances import Acceptance, Acceptances, OffsetRange
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.page.page import application_page
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.verify.misrouted import InputReport, Place, misrouted, refuse_misrouted
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.report import Report
from kafka_rescale.core.verify.report_text import render
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion import finish as finishing
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.modes import blue_green
from kafka_rescale.operations.verify import accept as operation

from tests.support.application_files import write_application
from tests.support.expansion.control_states import after
from tests.support.page.page_contents import NOW_MS, complete
from tests.support.situations import situation

GROWN = InputPlan.model_validate(
    {"topic": "orders", "policy": "paused", "partitioner": "murmur2", "current": 4, "target": 8}
)
HOMES = {key: partitioner_named("murmur2").partition_batch([key], 8)[0] for key in (b"k%d" % i for i in range(99))}
STALE = next(key for key, home in HOMES.items() if home == 6)
"""A key whose partition was 2 before the growth from 4 to 8."""

RANGE = OffsetRange("orders", 2, 120, 187)
SEEN = Acceptance(plan="f00d", finding=str(RANGE), records=2, by="ada", at_ms=0, reason="replayed")


def at(*offsets: int, partition: int = 2) -> list[Place]:
    return [Place(partition, offset, STALE) for offset in offsets]


@pytest.mark.parametrize("name", ["orders-2:120-187", "a-b.c-12:0-0"])
def test_a_finding_is_named_by_its_place(name: str) -> None:
    assert str(OffsetRange.parse(name)) == name


@pytest.mark.parametrize("name", ["", "orders", "orders-2", "orders-2:5", "orders-2:9-5", "orders-2:5-9 or so"])
def test_nothing_else_names_misrouted_records(name: str) -> None:
    assert OffsetRange.parse(name) is None


def test_every_partition_with_misrouted_records_is_a_finding() -> None:
    report = misrouted(GROWN, [*at(120, 150, 187), *at(3, partition=0), Place(6, 9, STALE)])
    assert list(map(str, report.findings)) == ["orders-0:3-3", "orders-2:120-187"]
    assert [span.records for span in report.spans] == [1, 3]


def test_what_was_accepted_is_no_finding_any_more_and_is_still_reported() -> None:
    report = misrouted(GROWN, at(120, 187), [RANGE])
    assert (report.misrouted, report.findings, report.first) == (0, (), ())
    assert (report.records, report.accepted) == (2, 2)
    refuse_misrouted([report])


@pytest.mark.parametrize(
    ("beside", "finding"),
    [(at(188), "orders-2:188-188"), (at(119), "orders-2:119-119"), (at(150, partition=0), "orders-0:150-150")],
    ids=["later", "earlier", "another partition"],
)
def test_a_misrouted_record_beside_an_accepted_one_still_fails(beside: list[Place], finding: str) -> None:
    report = misrouted(GROWN, [*at(120, 187), *beside], [RANGE])
    assert (report.misrouted, report.accepted) == (1, 2)
    with pytest.raises(UnsafeState, match=f"accept FILE --reason TEXT --finding {finding}`"):
        refuse_misrouted([report])


def test_an_acceptance_counts_for_its_topic_and_its_expansion_alone() -> None:
    known = Acceptances(accepted=(SEEN,))
    assert known.ranges("f00d", "orders") == (RANGE,)
    assert known.ranges("f00d", "customers") == known.ranges("beef", "orders") == ()
    assert (known.of("f00d"), known.of("beef")) == ({str(RANGE): SEEN}, {})


def accepted(plan: str, *findings: str) -> Acceptances:
    return Acceptances(accepted=tuple(SEEN.model_copy(update={"plan": plan, "finding": f}) for f in findings))


def verified(*inputs: InputReport, passed: bool = True) -> Report:
    """A report with these inputs. After it, ``RANGE`` was accepted. With ``passed``, all stores are equal."""
    report = Report.model_validate(complete("orders", passed=passed).control.report)
    given = report.model_copy(update={"inputs": inputs})
    return given.concluded(accepted(given.plan, str(RANGE)))


def test_the_report_says_what_was_accepted_by_whom_and_why() -> None:
    report = verified(misrouted(GROWN, at(120, 187, 300), [RANGE]))
    assert (report.passed, report.unaccepted) == (False, ("orders-2:300-300",))
    text = render(report)
    assert "orders: 1 of 3 records since the cutover misrouted, 2 more accepted" in text
    assert "\nfinding orders-2:300-300\n" in text
    assert "\norders-2:120-187: 2 accepted by ada at 1970-01-01T00:00:00+00:00: replayed" in text


def test_the_outcome_of_a_comparison_is_accepted_as_it_is_and_no_other() -> None:
    report = verified(passed=False)
    assert (report.passed, len(report.compared)) == (False, 2)
    assert report.unaccepted == tuple(report.compared)
    known = accepted(report.plan, *report.compared)
    assert report.concluded(known).passed
    assert [a.finding for a in report.concluded(known).acceptances] == list(report.compared)
    assert not report.concluded(accepted("of another plan", *report.compared)).passed
    assert not report.concluded(accepted(report.plan, *list(report.compared)[1:])).passed

    first, *others = report.stores
    changed = [
        {"failures": {Oracle.STATE: 2}},
        {"failures": {Oracle.TOMBSTONES: 1}},
        {"partitions": (first.partitions[0].model_copy(update={"green_hash": "0"}), *first.partitions[1:])},
    ]
    for change in changed:
        later = report.model_copy(update={"stores": (first.model_copy(update=change), *others)})
        assert later.concluded(known).unaccepted == (later.stores[0].finding,)


def test_wrong_start_offsets_are_accepted_as_they_are_and_no_others() -> None:
    def wrong(detail: str) -> Report:
        finding = KeyFinding(oracle=Oracle.START_OFFSETS, subject="orders-2", detail=detail)
        return verified().model_copy(update={"start_offsets": (finding,)})

    known = accepted(wrong("5").plan, *wrong("5").compared)
    assert wrong("5").concluded(known).passed
    assert not wrong("6").concluded(known).passed


def test_a_report_of_before_there_were_acceptances_is_read() -> None:
    old = verified(misrouted(GROWN, at(120))).model_dump(mode="json")
    for each in (old["inputs"][0], old):
        for new in {"spans", "accepted", "unaccepted", "acceptances"} & each.keys():
            del each[new]
    assert Report.model_validate(old).acceptances == ()


def test_the_page_and_the_status_tell_what_was_accepted() -> None:
    world = complete("orders")
    report = verified(misrouted(GROWN, at(120, 187), [RANGE]))
    known = accepted(report.plan, str(RANGE))
    state = world.control.model_copy(update={"report": report.model_dump(mode="json"), "acceptances": known})
    proof = application_page(world.application, world.topology, state, world.cluster, NOW_MS).proof
    assert proof is not None
    assert (proof.passed, proof.findings, proof.accepted) == (True, 0, 1)
    shown = status_view(world.application, state, ())
    assert "verification: passed, with 1 findings accepted\norders-2:120-187: 2 accepted by ada" in shown.text
    assert shown.data["acceptances"][0]["reason"] == "replayed"

    another = state.model_copy(update={"journal": Journal(plan=situation().plan, timings={"total": 7.25})})
    told = status_view(world.application, another, ()).text
    assert f"verification of the expansion before it, to {report.green}: passed" in told
    assert "pause: 7.2 s" in told


def test_what_was_accepted_after_verify_is_in_the_report_that_the_expansion_ends_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = situation().plan
    # The clock of verify's driver is behind the clock of the cutover's worker.
    journal = Journal(plan=plan, phase=Phase.STARTED, pause_started_ms=2 * NOW_MS)
    proof = verified().model_copy(update={"plan": plan.fingerprint, "promotion": journal.promotion})
    before = proof.model_dump(mode="json")
    lease = Lease(owner="test", epoch=1, target=8, expires_at_ms=0)
    known = accepted(plan.fingerprint, str(RANGE))
    states = [ControlState(journal=journal, lease=lease, report=before, acceptances=known)]

    def update(change: Any) -> ControlState:
        states.append(after(states[-1], change(states[-1])))
        return states[-1]

    control, nothing = SimpleNamespace(read=lambda: states[-1], update=update), None
    members: list[str] = []
    admin = SimpleNamespace(describe_group=lambda group: GroupDescription(group, "Stable", tuple(members)))
    lifecycle = SimpleNamespace(is_running=lambda _: True)
    parts: list[Any] = [situation().application, nothing, admin, control, lifecycle]
    monkeypatch.setattr(Rescale, "open", lambda *_: Rescale(*parts, owner="test"))
    for check in ("assert_alone", "assert_still"):
        monkeypatch.setattr(blue_green, check, lambda *_: None)
    monkeypatch.setattr(finishing, "release_compaction", lambda *_: None)
    monkeypatch.setattr(finishing.lease, "release", lambda *_: None)
    looked = (misrouted(GROWN, at(120, 187), [RANGE]),)
    monkeypatch.setattr(finishing, "look_for_misrouted", lambda *_: looked)
    with pytest.raises(Outage, match=f"{plan.green}: found its group has no members; .* NOBODY PROCESSES THEM"):
        finishing.finish(parts[0], parts[1], owner="test")
    members.append("instance-1")
    ended = finishing.finish(parts[0], parts[1], owner="test")
    report = Report.model_validate(ended["report"])
    assert (report.inputs, report.acceptances, report.passed) == (looked, known.accepted, True)
    assert states[-1].journal is not None
    assert states[-1].journal.phase is Phase.COMPLETE


def test_nobody_accepts_by_a_slip(tmp_path: Path) -> None:
    file = write_application(tmp_path)
    dag = accept_dag(load_application(file), file)
    assert dag.dag_id == "accept_orders-app"
    with pytest.raises(Exception, match="No value passed"):
        dag.params.validate()


@pytest.mark.parametrize(("user", "by"), [("ada", "ada (accept_x/r)"), (None, "somebody (accept_x/r)")])
def test_the_dag_accepts_in_the_name_of_who_triggered_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: str | None, by: str
) -> None:
    told: dict[str, Any] = {}

    def accept(*_: Any, **arguments: Any) -> tuple[Acceptance, ...]:
        told.update(arguments)
        return (SEEN,)

    monkeypatch.setattr(operation, "accept", accept)
    monkeypatch.setattr(closing.AcceptOperator, "connection", lambda *_: None)
    file = str(write_application(tmp_path))
    task = closing.AcceptOperator(
        task_id="accept", application_file=file, findings="orders-2:1-1 orders-3:4-9", reason="why"
    )
    run = SimpleNamespace(dag_id="accept_x", run_id="r", triggering_user_name=user)
    assert task.execute({"dag_run": run}) == [str(SEEN)]  # type: ignore[typeddict-item]
    assert told == {"findings": ["orders-2:1-1", "orders-3:4-9"], "by": by, "reason": "why"}
