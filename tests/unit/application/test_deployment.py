"""The deployment is asked before anything is touched. An answer that can't be right is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.deployment import Deployment
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.lifecycle import status
from kafka_rescale.operations.preflight import deployment
from kafka_rescale.operations.preflight.deployment import deployment_of

from tests.support.situations import INPUTS, found, journal, situation
from tests.support.small_application import application, declared

SHELL = declared("shop")["lifecycle"]
BEFORE = ControlState()
WRONG = Finding("it", "x", "y", "z")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in this directory, and no test waits for the end of a session."""
    monkeypatch.setenv("KAFKA_RESCALE_HOME", str(tmp_path))
    monkeypatch.setattr(deployment, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(deployment, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(status, "STATUS_SECONDS", 0.0)
    return tmp_path


def said(given: Situation, *members: int, upstream: tuple[Any, ...] = ()) -> Deployment:
    """The answer of the deployment. ``members`` are the group's members at each question."""
    numbers = iter(members or (0,))
    admin: Any = SimpleNamespace(describe_group=lambda _: SimpleNamespace(members=("m",) * next(numbers)))
    return deployment_of(given, admin, upstream)


def of_file(control: ControlState = BEFORE, **fields: Any) -> Situation:
    """The sound application with some fields of its file changed."""
    return replace(situation(control=control), application=application("shop", **fields))


def with_status(command: str, control: ControlState = BEFORE, **fields: Any) -> Situation:
    return of_file(control, lifecycle={**SHELL, "status": command}, **fields)


def test_blue_runs_and_green_does_not() -> None:
    assert said(situation()) == Deployment((), blue_runs=True, green_runs=False)
    assert found(situation(deployment=said(situation()))) == []


def test_the_commands_are_those_of_the_running_generation_and_the_next(home: Path) -> None:
    generations = Generations(running="shop-g2", generation=2, partitions=4)
    asked = "sh -c 'echo $0 >>asked; test $0 = shop-g2 || exit 3' {application_id}"
    given = with_status(asked, ControlState(generations=generations))
    assert said(given) == Deployment((), blue_runs=True, green_runs=False)
    assert (home / "asked").read_text().split() == ["shop-g2", "shop-g3"]


@pytest.mark.parametrize(("count", "told"), [("start_command", "4"), ("fixed", "8"), ("derived", "8")])
def test_only_a_count_of_the_start_command_tells_the_first_generations(home: Path, count: str, told: str) -> None:
    """The file has the count that is aimed at: 8."""
    asked = "sh -c 'echo $1 >>asked; test $0 = shop || exit 3' {application_id} {partitions}"
    said(with_status(asked, repartitions=[{"name": "by-customer", "count": count}]))
    assert (home / "asked").read_text().split()[0] == told


@pytest.mark.parametrize(("code", "expected"), [(1, "exit code 1"), (127, "exit code 127")])
def test_a_status_that_fails_is_refused_before_anything_is_touched(code: int, expected: str) -> None:
    given = with_status(f"sh -c 'exit {code}' {{application_id}}")
    [line] = found(situation(deployment=said(given)))
    assert line.startswith(f"lifecycle status of shop: found {expected} (); expected 0 (running) or 3 (stopped)")


def test_a_status_that_always_says_stopped_is_contradicted_by_the_group() -> None:
    given = with_status("sh -c 'exit 3' {application_id}")
    [line] = found(situation(deployment=said(given, 2)))
    assert line.startswith("lifecycle status of shop: found stopped, while its group has members (2); expected an")


@pytest.mark.parametrize("runs", [True, False, None])
def test_an_application_that_does_not_run_is_told_as_it_stands_still_for_longer_than_the_pause(
    runs: bool | None,
) -> None:
    lines = messages(situation(deployment=Deployment((), blue_runs=runs, green_runs=False)))
    told = [line for line in lines if line.startswith("shop does not run: nothing is processed until")]
    assert len(told) == (runs is False)


def test_members_that_died_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "SETTLE_SECONDS", 60.0)
    given = with_status("sh -c 'exit 3' {application_id}")
    assert said(given, 2, 1, 0) == Deployment((), blue_runs=False, green_runs=False)


def test_a_status_that_always_says_running_is_found_by_the_next_generation() -> None:
    [line] = found(situation(deployment=said(with_status("true {application_id}"))))
    assert line.startswith("lifecycle status of shop-g2: found running, before it has ever been started; expected")


def test_in_place_there_is_no_next_generation() -> None:
    given = with_status("true {application_id}", mode="in_place")
    assert said(given) == Deployment((), blue_runs=True)


def test_every_program_that_can_not_be_run_is_named(home: Path) -> None:
    (home / "run.sh").write_text("#!/bin/sh\n")
    producers = {"stop": "./stop.sh", "start": "true"}
    given = of_file(
        lifecycle={**SHELL, "start": "./run.sh {application_id}", "stop": "./absent.sh {application_id}"},
        inputs=[INPUTS[0], {**INPUTS[1], "producers": producers}],
    )
    unusable = said(given).unusable
    assert [(f.what, f.found) for f in unusable] == [
        ("lifecycle command start of shop", f"no permission to execute {home / 'run.sh'}"),
        ("lifecycle command stop of shop", "no program ./absent.sh"),
        ("stop command of the producers of shop-customers", "no program ./stop.sh"),
    ]
    assert [f"{each}" for each in unusable] == found(situation(deployment=Deployment(unusable)))


def test_a_missing_program_and_a_wrong_status_are_told_at_once() -> None:
    given = of_file(
        lifecycle={**SHELL, "stop": "./absent.sh {application_id}", "status": "false {application_id}"}
    )
    assert [f.what for f in said(given).unusable] == [
        "lifecycle command stop of shop",
        "lifecycle status of shop",
    ]


def test_an_application_that_is_held_as_producer_is_looked_at() -> None:
    upstream = application("up", lifecycle={**SHELL, "stop": "./absent.sh {application_id}"})
    [line] = said(situation(), upstream=(upstream,)).unusable
    assert (line.what, line.found) == ("lifecycle command stop of up", "no program ./absent.sh")


def test_a_class_that_can_not_be_made_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deployments", ModuleType("deployments"))
    given = of_file(lifecycle={"type": "python", "callable": "deployments:Absent"})
    [line] = said(given).unusable
    assert line.what == "lifecycle 'deployments:Absent'"


def test_of_an_expansion_in_progress_only_the_programs_are_looked_at() -> None:
    assert said(with_status("false {application_id}", journal(8))) == Deployment()
    [line] = said(with_status("./absent.sh {application_id}", journal(8))).unusable
    assert line.found == "no program ./absent.sh"
    refused = found(situation(8, control=journal(8), deployment=Deployment((WRONG,))))
    assert refused == [str(WRONG)]


def test_a_person_is_not_asked() -> None:
    assert said(of_file(lifecycle={"type": "manual"})) == Deployment()
