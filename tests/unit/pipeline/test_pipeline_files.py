"""Commands that need no cluster, for files of runtime ``spark``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from kafka_rescale.cli.app import app
from kafka_rescale.cli.exit_codes import PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.acls.acls import Acl, Resource
from kafka_rescale.core.acls.pipeline import pipeline_acls
from kafka_rescale.core.application import runtimes
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.processing.backfill import backfill_of
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.spark.processing.task_work import transactional_id

from tests.support.application_files import write_application
from tests.support.words_pipeline import words, write_pipeline

TOPIC, GROUP, TRANSACTIONAL_ID = Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID
Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *arguments: str) -> Any:
    """What a command prints as JSON."""
    assert main([*arguments, "--json"]) == PASSED
    return json.loads(capsys.readouterr().out)


def test_validate_shows_what_a_valid_file_names(tmp_path: Path, capsys: Captured) -> None:
    file = str(write_pipeline(tmp_path))
    assert main(["validate", file]) == PASSED
    out = capsys.readouterr().out
    assert "words: the file is valid; runtime spark, pipeline tests.support.words_pipeline:words." in out
    found = printed(capsys, "validate", file)
    assert [part["stores"] for part in found["subtopologies"]] == [[], ["counts"]]
    assert found["clients"] == [{"client": "words", "threads": 2, "state.dir": str(tmp_path / "state")}]


def test_describe_shows_the_topics_by_their_full_names_and_the_topology(tmp_path: Path, capsys: Captured) -> None:
    file = str(write_pipeline(tmp_path))
    assert main(["describe", file]) == PASSED
    assert words().describe().rstrip() in capsys.readouterr().out
    topics = {
        t["topic"]: (t["role"], t["read by"], t["written by"]) for t in printed(capsys, "describe", file)["topics"]
    }
    assert topics == {
        "lines": ("input", "0", ""),
        "words-by-word-repartition": ("repartition", "1", "0"),
        "counted": ("output", "", "1"),
        "words-counts-changelog": ("changelog, timestamped-key-value", "1", "1"),
    }


@pytest.mark.parametrize("command", ["validate", "describe", "acls"])
@pytest.mark.parametrize(
    ("pipeline", "found"),
    [
        ("no_such_module:words", "found No module named 'no_such_module'"),
        ("tests.support.words_pipeline:NOT_A_PIPELINE", "found a str"),
    ],
)
def test_a_pipeline_that_can_not_be_used_is_one_line(
    tmp_path: Path, capsys: Captured, command: str, pipeline: str, found: str
) -> None:
    assert main([command, str(write_pipeline(tmp_path, pipeline=pipeline))]) == REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert found in line


@pytest.mark.parametrize("command", ["plan", "verify"])
def test_a_command_for_the_other_runtime_says_which_there_are(
    tmp_path: Path, capsys: Captured, command: str
) -> None:
    assert main([command, str(write_pipeline(tmp_path))]) == REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        "runtime: found spark; expected kafka-streams, the only runtime that this is for. For a pipeline" in line
    )


def test_the_commands_that_are_named_there_exist() -> None:
    named = runtimes._REMEDIES[runtimes.KAFKA_STREAMS].removeprefix("For a pipeline there are ").rstrip(".")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(named.replace(" and ", ", ").split(", ")) <= set(commands)


def test_a_file_with_a_pipeline_and_without_a_runtime_is_told_about_the_runtime(
    tmp_path: Path, capsys: Captured
) -> None:
    assert main(["validate", str(write_pipeline(tmp_path, runtime=None))]) == REFUSED
    assert "found no field `runtime`; expected `runtime: spark`" in capsys.readouterr().err


def acls_of(directory: Path, **changes: Any) -> tuple[PipelineApplication, tuple[Acl, ...]]:
    application = load_pipeline_application(write_pipeline(directory, **changes))
    return application, pipeline_acls(application, words().topology)


def allowed(acls: tuple[Acl, ...], role: Role, resource: Resource, name: str) -> set[str]:
    return {a.operation.value for a in acls if a.role is role and a.pattern.covers(resource, name)}


@pytest.mark.parametrize(
    ("role", "resource", "name", "operations"),
    [
        (Role.PLAN, TOPIC, "_kafka_rescale", {"Read", "DescribeConfigs"}),
        (Role.PLAN, TOPIC, "lines", set()),
        (Role.COPY, TOPIC, "lines", {"Read", "DescribeConfigs"}),
        (Role.COPY, TOPIC, "counted", {"Write", "DescribeConfigs"}),
        (Role.COPY, TOPIC, "words-by-word-repartition", {"Read", "Write", "Delete", "DescribeConfigs"}),
        (Role.COPY, TOPIC, "words-counts-changelog", {"Read", "Write", "Delete", "DescribeConfigs"}),
        (Role.COPY, GROUP, "words", {"Read"}),
        (Role.COPY, TRANSACTIONAL_ID, transactional_id("words", "1_0"), {"Write"}),
        (Role.COPY, TRANSACTIONAL_ID, f"kafka-rescale-words/{Concern.RESULT}/process/1/x", {"Write"}),
        (Role.ADMIN, TOPIC, "words-counts-changelog", {"Read", "Write", "Create", "Alter", "AlterConfigs"}),
        (Role.ADMIN, TOPIC, "counted", {"Describe", "DescribeConfigs"}),
        (Role.ADMIN, TRANSACTIONAL_ID, "kafka-rescale-words", {"Write"}),
        (Role.ADMIN, TRANSACTIONAL_ID, transactional_id("words", "1_0"), {"Write"}),
        (Role.VERIFY, TOPIC, "lines", set()),
    ],
)
def test_what_a_role_may_do(
    tmp_path: Path, role: Role, resource: Resource, name: str, operations: set[str]
) -> None:
    assert allowed(acls_of(tmp_path)[1], role, resource, name) == operations


def test_nobody_may_do_anything_to_a_neighbour_whose_id_begins_alike(tmp_path: Path) -> None:
    for acl in acls_of(tmp_path)[1]:
        assert not acl.pattern.covers(TOPIC, "wordsmith-counts-changelog")
        assert not acl.pattern.covers(GROUP, "wordsmith")
        assert not acl.pattern.covers(TRANSACTIONAL_ID, "kafka-rescale-wordsmith")


def test_a_backfill_is_covered_by_the_permissions_of_its_pipeline(tmp_path: Path) -> None:
    fields = {"backfill": {"outputs": {"counted": "counted-then"}}}
    application, acls = acls_of(tmp_path, **fields)
    then = backfill_of(application, words().topology, "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z")
    name = then.generation(application.application_id)
    for role in (Role.COPY, Role.ADMIN):
        assert allowed(acls, role, GROUP, name) == {"Read"}
        assert allowed(acls, role, TRANSACTIONAL_ID, transactional_id(name, "1_0")) == {"Write"}
        assert allowed(acls, role, TRANSACTIONAL_ID, f"kafka-rescale-{name}") == {"Write"}
    assert "Create" in allowed(acls, Role.ADMIN, TOPIC, f"{name}-counts-changelog")
    assert allowed(acls, Role.COPY, TOPIC, "counted-then") == {"Write", "DescribeConfigs"}


def test_acls_are_printed_as_a_table_and_as_commands(tmp_path: Path, capsys: Captured) -> None:
    file = str(write_pipeline(tmp_path))
    assert main(["acls", file, "--principal-copy", "User:jobs"]) == PASSED
    out = capsys.readouterr().out
    assert "User:jobs --operation DescribeConfigs --operation Read --topic lines" in out
    assert "warning" not in out
    found = printed(capsys, "acls", file)
    assert found["warnings"] == []
    assert {
        "role": "copy",
        "principal": "User:kafka-rescale-copy",
        "resource": "transactional-id",
        "name": "words-",
        "pattern": "prefixed",
        "operation": "Write",
    } in found["acls"]


class TestOtherApplications:
    def test_a_prefix_that_covers_another_application_is_warned_of(self, tmp_path: Path, capsys: Captured) -> None:
        file = str(write_application(tmp_path, application_id="orders"))
        write_application(tmp_path, application_id="orders-eu")
        write_application(tmp_path, application_id="ordersx")
        write_pipeline(tmp_path, application_id="orders-us")
        (tmp_path / "broken.yaml").write_text("[")
        warnings = printed(capsys, "acls", file)["warnings"]
        assert [w.partition("cover ")[2].partition(" ")[0] for w in warnings] == ["orders-eu", "orders-us"]
        assert warnings[0] == (
            "ACLs of orders (roles plan, copy, admin, verify): found that they cover orders-eu "
            f"({tmp_path}/orders-eu.yaml), too: group 'orders-' and what begins with it; topic 'orders-' and what "
            "begins with it; transactional-id 'kafka-rescale-orders-' and what begins with it; expected prefixes "
            "with which nothing of another application begins. Rename one of the two before it runs: no id may "
            "begin with orders-, nor any `internal_topic_prefix`. Or grant them knowingly, to principals that may "
            "do so to both."
        )
        assert main(["acls", file]) == PASSED
        assert "warning: ACLs of orders " in capsys.readouterr().out

    def test_the_one_with_the_longer_name_reaches_nobody(self, tmp_path: Path, capsys: Captured) -> None:
        write_application(tmp_path, application_id="orders")
        file = str(write_application(tmp_path, application_id="orders-eu"))
        assert printed(capsys, "acls", file)["warnings"] == []

    def test_topics_are_compared_by_the_prefix_that_a_file_gives_them(
        self, tmp_path: Path, capsys: Captured
    ) -> None:
        write_application(tmp_path, application_id="elsewhere", internal_topic_prefix="orders-mart")
        file = str(write_application(tmp_path, application_id="orders"))
        (warning,) = printed(capsys, "acls", file)["warnings"]
        assert "elsewhere" in warning
        assert "too: topic 'orders-' and what begins with it; expected" in warning

    def test_pipelines_warn_as_well(self, tmp_path: Path, capsys: Captured) -> None:
        file = str(write_pipeline(tmp_path))
        write_application(tmp_path, application_id="words-of-shop")
        (warning,) = printed(capsys, "acls", file)["warnings"]
        assert "transactional-id 'words-' and what begins with it" in warning
