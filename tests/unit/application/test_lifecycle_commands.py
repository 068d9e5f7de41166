"""Commands of an application file are refused if they can't be called, or are the same for both generations."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.application.commands import filled, words
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.application.load import topology_of

from tests.support.small_application import application, declared

ORDERS, CUSTOMERS = declared("shop")["inputs"]
SHELL = declared("shop")["lifecycle"]
TOLD = ["{partitions}", "{internal_topic_prefix}", f"{{input:{ORDERS['topic']}}}"]
GREEN = Instance("shop-g2", 2, 8, {"orders": "orders-p8"})


def mistakes(**changes: Any) -> list[str]:
    given = application("shop", **changes)
    return [str(m.complaint) for m in check_declaration(given, topology_of(given))]


def of_shell(**commands: str) -> list[str]:
    return mistakes(lifecycle={**SHELL, **commands})


@pytest.mark.parametrize(
    ("template", "command"),
    [
        ("run {application_id} {partitions} {generation}", "run shop-g2 8 2"),
        ("run {internal_topic_prefix} {input:orders}", "run shop-g2 orders-p8"),
        ("run {{literal}}", "run {literal}"),
    ],
)
def test_what_is_filled_in(template: str, command: str) -> None:
    assert filled(template, GREEN) == command


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("run {application}", "the placeholder {application}"),
        ("run {}", "the placeholder {}"),
        ("run {application_id.x}", "the placeholder {application_id.x}"),
        ("run {input:payments}", "the placeholder {input:payments}"),
        ("run {input}", "the placeholder {input}"),
        ("run {partitions", "braces that don't match (expected '}' before end of string)"),
        ("run '{\"replicas\": 3}'", 'the placeholder {"replicas": 3}'),
        ("run {application_id:d}", "a format that can't be applied ("),
    ],
)
def test_what_can_not_be_filled_in(template: str, found: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filled(template, GREEN)
    assert refused.value.found.startswith(found)


@pytest.mark.parametrize(
    ("command", "syntax"),
    [
        ("run | tee log", "|"),
        ("run >log", ">log"),
        ("run > log", ">"),
        ("run 2>&1", "2>&1"),
        ("start <application>", "<application>"),
        ("run && wait", "&&"),
        ("run & wait", "&"),
        ("run || true", "||"),
        ("run; wait", "run;"),
        ("run $HOME/x", "$HOME"),
        ("run ${HOME}", "${HOME}"),
        ("run $(hostname)", "$("),
        ("run `hostname`", "`"),
        ("JAVA_OPTS=-Xmx1g run", "JAVA_OPTS="),
    ],
)
def test_what_only_a_shell_understands_is_refused(command: str, syntax: str) -> None:
    with pytest.raises(InvalidInput, match="only a shell understands") as refused:
        words(command)
    assert refused.value.found.startswith(f"`{syntax}`")
    assert ("env " if syntax.endswith("=") else "sh -c") in refused.value.remedy


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("sh -c 'a | b > c; d $HOME'", ["sh", "-c", "a | b > c; d $HOME"]),
        ('sh -c "a && b"', ["sh", "-c", "a && b"]),
        (r"run \| a\>b", ["run", "|", "a>b"]),
        ("env A=b run --set=x=y url?a=1&b=2", ["env", "A=b", "run", "--set=x=y", "url?a=1&b=2"]),
        ("kubectl get pods -l app=x", ["kubectl", "get", "pods", "-l", "app=x"]),
    ],
)
def test_what_is_quoted_or_means_nothing_to_a_shell_is_for_the_program(command: str, arguments: list[str]) -> None:
    assert words(command) == arguments


@pytest.mark.parametrize("command", ["", "  ", "run 'it", 'run "it'])
def test_a_command_without_a_beginning_or_an_end_is_refused(command: str) -> None:
    with pytest.raises(InvalidInput, match="expected a program with its arguments"):
        words(command)


class TestDeclaration:
    @pytest.mark.parametrize("name", ["start", "start_gated", "stop", "status"])
    def test_every_command_says_which_generation_it_is_for(self, name: str) -> None:
        assert of_shell(**{name: "run it {partitions}"}) == [
            f"lifecycle.{name}: found no {{application_id}} in the {name} command; expected a command that names "
            "its generation: both exist side by side, each with its own application.id. Let the command take the "
            "application.id from {application_id}. If the command uses another name for each generation, "
            "{generation} is enough."
        ]
        assert of_shell(**{name: "run it-{generation} {partitions}"}) == []

    def test_in_place_there_is_but_one(self) -> None:
        assert mistakes(mode="in_place", lifecycle={**SHELL, "stop": "run it"}) == []

    def test_a_count_that_the_program_sets_is_told_it(self) -> None:
        changes: dict[str, Any] = {"repartitions": [{"name": "by-customer", "count": "start_command"}]}
        start = {**SHELL, "start": "run {application_id}"}
        assert mistakes(lifecycle=start) == []
        assert mistakes(**changes) == []
        assert mistakes(repartitions=[{"name": "by-customer", "count": "fixed"}], lifecycle=start) == []
        [found] = mistakes(**changes, lifecycle=start)
        assert found.startswith(
            "lifecycle.start: found no {partitions} in the start command; expected the count of"
        )

    @pytest.mark.parametrize("name", ["start_gated", "start_held"])
    @pytest.mark.parametrize("placeholder", TOLD)
    def test_behind_a_gate_the_program_is_told_what_start_tells_it(self, name: str, placeholder: str) -> None:
        told = {"start": f"run {{application_id}} {placeholder}"}
        shown = "{input:NAME}" if placeholder.startswith("{input") else placeholder
        [found] = [f for f in of_shell(**told, **{name: "hold {application_id}"}) if f"lifecycle.{name}" in f]
        assert found.startswith(f"lifecycle.{name}: found no {shown} in the {name} command; expected everything")
        other = of_shell(**told, **{name: f"hold {{application_id}} {placeholder}"})
        assert not [f for f in other if f"lifecycle.{name}" in f]

    def test_all_that_is_wrong_is_said_at_once(self) -> None:
        found = of_shell(start="run {name}", stop="run {application_id} | cat", status="run 'it")
        assert [line.split(": found ")[0] for line in found] == [
            f"lifecycle.{c}" for c in ("start", "stop", "status")
        ]

    def test_commands_of_producers_are_looked_at_too(self) -> None:
        producers = {"stop": "run stop && wait", "start": "run start {application_id}"}
        [found] = mistakes(inputs=[ORDERS, {**CUSTOMERS, "producers": producers}])
        assert found.startswith(
            "inputs[1].producers.stop: found `&&`, which only a shell understands; expected one "
        )
