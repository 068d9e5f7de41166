"""Misrouted records that a person has accepted: reported by name, and never more than was accepted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.maintenance_dags import accept_dag
from kafka_rescale.airflow.operators import closing
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.acceptance import Acceptance, Acceptances, FindingId
from kafka_rescale.core.application_page import application_page
from kafka_rescale.core.control_records import ControlState, Lease
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.external_topics import InputPlan
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.core.misrouted import InputReport, Place, misrouted, refuse_misrouted
from kafka_rescale.core.partitioners import partitioner_named
from kafka_rescale.core.report import render
from kafka_rescale.core.verification_report import Report
from kafka_rescale.operations import accept as operation
from kafka_rescale.operations import finish as finishing
from kafka_rescale.operations.rescale import Rescale

from tests.support.application_files import CHAIN, write_application
from tests.support.page_contents import NOW_MS, complete
from tests.support.situations import situation

GROWN = InputPlan.model_validate(
    {"topic": "orders", "policy": "paused", "partitioner": "murmur2", "current": 4, "target": 8}
)
HOMES = {key: partitioner_named("murmur2").partition_batch([key], 8)[0] for key in (b"k%d" % i for i in range(99))}
STALE = next(key for key, home in HOMES.items() if home == 6)
"""Its partition was 2, before the growth from 4 to 8."""

SEEN = Acceptance(
    plan="f00d", topic="orders", partition=2, first=120, last=187, records=2, by="ada", at_ms=0, reason="replayed"
)


def at(*offsets: int, partition: int = 2) -> list[Place]:
    return [Place(partition, offset, STALE) for offset in offsets]


@pytest.mark.parametrize("name", ["orders-2:120-187", "a-b.c-12:0-0"])
def test_a_finding_is_named_by_its_place(name: str) -> None:
    assert str(FindingId.parse(name)) == name


@pytest.mark.parametrize("name", ["", "orders", "orders-2", "orders-2:5", "orders-2:9-5", "orders-2:5-9 or so"])
def test_what_names_no_finding_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="as verify reports it"):
        FindingId.parse(name)


def test_every_partition_with_misrouted_records_is_a_finding() -> None:
    report = misrouted(GROWN, [*at(120, 150, 187), *at(3, partition=0), Place(6, 9, STALE)])
    assert list(map(str, report.findings)) == ["orders-0:3-3", "orders-2:120-187"]
    assert [span.records for span in report.spans] == [1, 3]


def test_what_was_accepted_is_no_finding_any_more_and_is_still_reported() -> None:
    report = misrouted(GROWN, at(120, 187), [SEEN])
    assert (report.misrouted, report.findings, report.first) == (0, (), ())
    assert (report.records, report.accepted, report.acceptances) == (2, 2, (SEEN,))
    refuse_misrouted([report])


@pytest.mark.parametrize(
    ("beside", "finding"),
    [(at(188), "orders-2:188-188"), (at(119), "orders-2:119-119"), (at(150, partition=0), "orders-0:150-150")],
    ids=["later", "earlier", "another partition"],
)
def test_a_misrouted_record_beside_an_accepted_one_still_fails(beside: list[Place], finding: str) -> None:
    report = misrouted(GROWN, [*at(120, 187), *beside], [SEEN])
    assert (report.misrouted, report.accepted) == (1, 2)
    with pytest.raises(UnsafeState, match=f"accept FILE --reason TEXT --finding {finding}`"):
        refuse_misrouted([report])


def test_an_acceptance_counts_for_its_topic_and_its_expansion_alone() -> None:
    known = Acceptances(accepted=(SEEN,))
    assert known.of("f00d", "orders") == (SEEN,)
    assert known.of("f00d", "customers") == known.of("beef", "orders") == ()


def verified(inputs: tuple[InputReport, ...]) -> Report:
    """A passed report with these inputs."""
    report = Report.model_validate(complete("orders").control.report)
    return report.model_copy(update={"inputs": inputs, "passed": not any(i.misrouted for i in inputs)})


def test_the_report_says_what_was_accepted_by_whom_and_why() -> None:
    text = render(verified((misrouted(GROWN, [*at(120, 187, 300)], [SEEN]),)))
    assert "orders: 1 of 3 records since the cutover misrouted, 2 more accepted" in text
    assert "  finding orders-2:300-300: 1 records" in text
    assert "orders-2:120-187: 2 records, accepted by ada at 1970-01-01T00:00:00+00:00: replayed" in text


def test_a_report_of_before_there_were_acceptances_is_read() -> None:
    old = verified((misrouted(GROWN, at(120)),)).model_dump(mode="json")
    for each in old["inputs"]:
        for new in ("spans", "accepted", "acceptances"):
            del each[new]
    assert Report.model_validate(old).accepted == 0


def test_the_page_and_the_status_tell_what_was_accepted() -> None:
    world = complete("orders")
    report = verified((misrouted(GROWN, at(120, 187), [SEEN]),)).model_dump(mode="json")
    state = world.control.model_copy(update={"report": report, "acceptances": Acceptances(accepted=(SEEN,))})
    proof = application_page(world.application, world.topology, state, world.cluster, NOW_MS).proof
    assert proof is not None
    assert (proof.passed, proof.findings, proof.accepted) == (True, 0, 2)
    shown = status_view(world.application, state, ())
    assert "verification: passed, 2 misrouted records accepted\norders-2:120-187: 2 records, accept" in shown.text
    assert shown.data["acceptances"][0]["reason"] == "replayed"


def test_what_was_accepted_after_verify_is_in_the_report_that_the_expansion_ends_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = situation().plan
    journal = Journal(plan=plan, phase=Phase.STARTED)
    before = verified(()).model_copy(update={"plan": plan.fingerprint}).model_dump(mode="json")
    lease = Lease(owner="test", epoch=1, target=8, expires_at_ms=0)
    states = [ControlState(journal=journal, lease=lease, report=before)]

    def update(change: Any) -> ControlState:
        states.append(states[-1].model_copy(update={str(k): v for k, v in change(states[-1]).items()}))
        return states[-1]

    control, nothing = SimpleNamespace(read=lambda: states[-1], update=update), None
    parts: list[Any] = [situation().application, nothing, nothing, control, nothing]
    monkeypatch.setattr(Rescale, "open", lambda *_: Rescale(*parts, owner="test"))
    monkeypatch.setattr(finishing, "_assert_blue_is_still", lambda *_: None)
    monkeypatch.setattr(finishing, "release_compaction", lambda *_: None)
    monkeypatch.setattr(finishing.lease, "release", lambda *_: None)
    looked = (misrouted(GROWN, at(120, 187), [SEEN]),)
    monkeypatch.setattr(finishing, "look_for_misrouted", lambda *_: looked)
    ended = finishing.finish(parts[0], parts[1], owner="test")
    assert Report.model_validate(ended["report"]).inputs == looked
    assert states[-1].journal is not None
    assert states[-1].journal.phase is Phase.COMPLETE


def test_only_an_application_whose_producers_are_held_has_a_dag_that_accepts(tmp_path: Path) -> None:
    from kafka_rescale.operations.load import load_application

    held = {"topic": "orders", "policy": "paused", "producers": {"stop": "true", "start": "true"}}
    file = write_application(tmp_path, inputs=[held])
    dag = accept_dag(load_application(file), file)
    assert dag is not None
    assert dag.dag_id == "accept_orders-app"
    with pytest.raises(Exception, match="No value passed"):
        dag.params.validate()
    assert accept_dag(load_application(write_application(tmp_path, **CHAIN)), file) is None


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
