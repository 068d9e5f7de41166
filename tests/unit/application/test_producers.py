"""Producers of paused inputs: another application, found among unusable files, or commands that fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.cluster import GroupDescription, TopicDescription
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Outage, TimedOut, UnsafeState
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion import producers

from tests.support.application_files import CHAIN, write_application
from tests.support.plans import plan_for
from tests.support.small_application import application

HELD_BY_UPSTREAM = {
    "application_id": "downstream",
    "inputs": [{"topic": "orders", "policy": "paused", "producers": {"application": "upstream"}}],
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Application files. The first ones can't be used, though they might be for the wanted application."""
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    (tmp_path / "a-dangling-link.yaml").symlink_to(tmp_path / "nowhere.yaml")
    (tmp_path / "b-directory.yaml").mkdir()
    (tmp_path / "c-not-text.yaml").write_bytes(b"application_id: upstream\xff\x00")
    (tmp_path / "d-mistake.yaml").write_text("application_id: upstream\npartitions: none")
    write_application(tmp_path, **HELD_BY_UPSTREAM)
    return tmp_path


def test_files_that_can_not_be_read_or_used_are_passed_over(directory: Path) -> None:
    write_application(directory, application_id="upstream")
    producers.upstream(load_application(directory / "downstream.yaml"))


def test_an_application_without_a_file_that_can_be_used_is_refused(directory: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        producers.upstream(load_application(directory / "downstream.yaml"))
    assert str(refused.value) == (
        "producers: found application 'upstream', which has no application file that can be used; expected "
        "the application_id of another application file. Correct the name, or give `stop:` and `start:` commands "
        "instead."
    )


@pytest.mark.parametrize(
    ("found", "generations", "told"),
    [
        (4, None, "upstream 4"),
        (0, None, "upstream 8"),
        (4, Generations(running="upstream-g2", generation=2, partitions=6), "upstream-g2 6"),
    ],
)
def test_an_application_is_started_with_the_count_that_it_runs_with(
    found: int, generations: Generations | None, told: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file has the count of its next expansion, which may come later."""
    started = write_upstream(directory)
    counted = "upstream-by-customer-repartition"
    topics = {counted: TopicDescription(counted, found, 1, {})} if found else {}
    producers.release(downstream(directory, monkeypatch, ControlState(generations=generations), topics))
    assert started.read_text().strip() == told


def write_upstream(directory: Path) -> Path:
    """Write the file of an application with its own count. Return the file to which its start command writes."""
    started = directory / "started"
    commands = {"start": f"sh -c 'echo $0 $1 > {started}' {{application_id}} {{partitions}}"}
    write_application(
        directory,
        application_id="upstream",
        partitions=8,
        repartitions=[{"name": "by-customer", "count": "start_command"}],
        lifecycle={**CHAIN["lifecycle"], **commands},
    )
    return started


def downstream(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: ControlState,
    topics: Mapping[str, TopicDescription] | None = None,
) -> Any:
    """An expansion of the application that holds ``upstream``.

    :param state: the control state of ``upstream``.
    :param topics: the existing topics.
    """
    there = topics or {}
    admin = SimpleNamespace(describe_topics=lambda names: {n: there[n] for n in names if n in there})
    monkeypatch.setattr(producers, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: state))
    held = load_application(directory / "downstream.yaml")
    return SimpleNamespace(application=held, connection=None, admin=admin)


def in_phase(phase: Phase) -> ControlState:
    """The control state of ``upstream`` during the expansion to its second generation."""
    journal = Journal(plan=plan_for("upstream"), phase=phase)
    return ControlState(
        journal=journal, generations=promoted_generations(journal) if journal.is_promoted else None
    )


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        (Phase.WARMING, "upstream 8"),
        (Phase.ROLLING_BACK, "upstream 8"),
        (Phase.ROLLED_BACK, "upstream 8"),
        (Phase.STARTED, "upstream-g2 8"),
        (Phase.VERIFIED, "upstream-g2 8"),
    ],
)
def test_an_application_whose_own_expansion_has_begun_since_is_started_all_the_same(
    phase: Phase, told: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its copies may take hours, and nothing else would start it in this time."""
    started = write_upstream(directory)
    producers.release(downstream(directory, monkeypatch, in_phase(phase)))
    assert started.read_text().strip() == told


@pytest.mark.parametrize("phase", [Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED])
def test_nobody_else_starts_an_application_at_its_own_cutover(
    phase: Phase, directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started = write_upstream(directory)
    producers.release(downstream(directory, monkeypatch, in_phase(phase)))
    assert not started.exists()
    assert f"upstream is not started: its own expansion is in phase {phase}" in caplog.text


def test_an_application_that_is_being_expanded_is_not_held(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_upstream(directory)
    for phase, remedy in ((Phase.WARMING, "finish, or roll it back; then"), (Phase.PROMOTED, "finish; then")):
        found = f"application upstream: found an expansion of it in phase {phase}.*Let that expansion {remedy}"
        with pytest.raises(UnsafeState, match=found):
            producers.hold(downstream(directory, monkeypatch, in_phase(phase)), lambda: 60.0)


def test_an_expansion_of_a_producer_is_told_long_before_it_is_held(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_upstream(directory)
    given = downstream(directory, monkeypatch, in_phase(Phase.WARMING))
    assert producers.expanding(given.connection, given.application) == (
        "upstream, the producer of orders: an expansion of it is in phase warming. The cutover holds it, and "
        "refuses while that goes on: let that expansion finish first.",
    )
    with pytest.raises(UnsafeState, match="application upstream: found an expansion of it in phase warming"):
        producers.assert_not_expanding(given)


@pytest.mark.parametrize("phase", [Phase.ROLLED_BACK, Phase.COMPLETE])
def test_an_expansion_of_a_producer_that_has_ended_is_no_hindrance(
    phase: Phase, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_upstream(directory)
    given = downstream(directory, monkeypatch, in_phase(phase))
    assert producers.expanding(given.connection, given.application) == ()
    producers.assert_not_expanding(given)


def test_an_application_is_not_its_own_producer() -> None:
    """The cutover would refuse to hold it in every attempt, because an expansion of it is in progress."""
    inputs = [
        {"topic": "shop-orders", "policy": "unkeyed"},
        {"topic": "shop-customers", "policy": "paused", "producers": {"application": "shop"}},
    ]
    shop = application("shop", inputs=inputs)
    [mistake] = check_declaration(shop, topology_of(shop))
    assert str(mistake.complaint) == (
        "inputs[1].producers.application: found shop, the application itself; expected another application. "
        "Delete `producers:` if no other program writes shop-customers: the application is stopped in any case. "
        "Otherwise name the application that writes it, or give `stop:` and `start:`."
    )


def declared(*commands: dict[str, Any]) -> Any:
    """An expansion of an application whose inputs have producers with these commands."""
    inputs = [{"topic": f"t{n}", "policy": "paused", "producers": c} for n, c in enumerate(commands)]
    return SimpleNamespace(application=application("shop", inputs=inputs))


def test_producers_are_released_also_after_others_could_not_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started = tmp_path / "started"
    broken = [{"stop": "true", "start": "./absent.sh"}, {"stop": "true", "start": "sh -c 'exit 5'"}]
    with pytest.raises(Outage) as failed:
        producers.release(declared(*broken, {"stop": "true", "start": f"touch {started}"}))
    assert started.exists()
    assert failed.value.what == "start command of the producers of t0"
    assert "exit code 127 ([Errno 2] No such file or directory: './absent.sh')" in failed.value.found
    assert "start command of the producers of t1: found exit code 5" in caplog.text


def test_a_stop_that_does_not_end_fails_in_time() -> None:
    commands = {"stop": "sleep 60", "start": "true", "timeout_seconds": 1}
    with pytest.raises(
        Outage,
        match=r"stop command of the producers of t0: found exit code 124 \(the command did not end within 1 s\)",
    ):
        producers.hold(declared(commands), lambda: 60.0)


def test_a_person_is_waited_for_no_longer_than_the_pause_may_last(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_application(directory, application_id="upstream", lifecycle={"type": "manual"})
    expansion = downstream(directory, monkeypatch, ControlState())
    expansion.admin.describe_group = lambda name: GroupDescription(name, "Stable", ("m",))
    with pytest.raises(TimedOut, match=r"after 0\.2 s waiting for a person .*: STOP every instance of upstream"):
        producers.hold(expansion, lambda: 0.2)
