"""From a shell, ``plan`` checks the permissions of every role with a connection, and names the other roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli import app as commands
from kafka_rescale.cli.connections import connections_of_others
from kafka_rescale.cli.exit_codes import PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import CONFIG_FILE_VARIABLE, CONFIG_VARIABLE
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.preflight.preflight import Preflight

from tests.support.application_files import CHAIN, write_application

OTHERS = (Role.COPY, Role.ADMIN, Role.VERIFY)
Checked = dict[Role, KafkaConnection]


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CONFIG_FILE_VARIABLE, CONFIG_VARIABLE, "AIRFLOW_CONN_KAFKA_DEFAULT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checked:
    """The connections of other roles that preflight is given."""
    given: Checked = {}

    def preflight(*_: Any, others: Checked, **__: Any) -> Preflight:
        given.update(others)
        return Preflight(None, True, ("already there",))

    monkeypatch.setattr(commands, "preflight", preflight)
    monkeypatch.setattr(KafkaConnection, "check", lambda _: None)
    return given


def config(directory: Path, user: str) -> str:
    """A file with the settings of a user."""
    file = directory / f"{user}.properties"
    file.write_text(f"bootstrap.servers = h:9\nsasl.username = {user}\n")
    return str(file)


def test_of_roles_without_a_connection_it_says_that_they_were_not_checked(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--config", config(tmp_path, "me"), "--config-admin", config(tmp_path, "admin")]
    own = {role.value: f"kafka_{role}" for role in OTHERS}
    assert main(["plan", str(write_application(tmp_path, kafka_conn_ids=own)), *options]) == PASSED
    assert {role: of.principal for role, of in checked.items()} == {Role.ADMIN: "User:admin"}
    assert (
        "permissions of copy, verify were not checked: these roles have connections of their own; name "
        "their settings: --config-copy FILE --config-verify FILE"
    ) in capsys.readouterr().out


def test_where_no_role_has_a_connection_of_its_own_nothing_is_said_of_roles(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(write_application(tmp_path)), "--config", config(tmp_path, "me")]) == PASSED
    assert checked == {}
    assert "permissions" not in capsys.readouterr().out


def test_with_a_connection_of_every_role_all_are_checked(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [o for role in OTHERS for o in (f"--config-{role}", config(tmp_path, role))]
    file = str(write_application(tmp_path))
    assert main(["plan", file, "--config", config(tmp_path, "plan"), *options, "--json"]) == PASSED
    assert {role: of.principal for role, of in checked.items()} == {role: f"User:{role}" for role in OTHERS}
    messages = json.loads(capsys.readouterr().out)["messages"]
    assert messages[0] == "already there"
    assert not [message for message in messages if "permissions" in message]


def test_it_says_that_commands_of_the_workers_were_not_looked_at(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "lifecycle: its commands were not looked at here. The preflight task checks them on its own machine."
    options = ["--config", config(tmp_path, "plan"), "--json"]
    for lifecycle, told in [({"type": "manual"}, False), (CHAIN["lifecycle"], True)]:
        assert main(["plan", str(write_application(tmp_path, lifecycle=lifecycle)), *options]) == PASSED
        assert (said in json.loads(capsys.readouterr().out)["messages"]) is told


def test_a_file_that_was_given_and_is_not_there_is_an_error(tmp_path: Path, checked: Checked) -> None:
    options = ["--config", config(tmp_path, "plan"), "--config-copy", str(tmp_path / "absent")]
    assert main(["plan", str(write_application(tmp_path)), *options]) == REFUSED
    assert checked == {}


def test_roles_are_looked_up_in_airflow_if_that_of_the_plan_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def airflow(user: str) -> str:
        return json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "h:9", "sasl.username": user}})

    application = load_application(write_application(tmp_path, kafka_conn_ids={"admin": "kafka_admin"}))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", airflow("all"))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ADMIN", airflow("admin"))
    found, unchecked = connections_of_others(application, None, dict.fromkeys(OTHERS))
    assert [found[role].principal for role in OTHERS] == ["User:all", "User:admin", "User:all"]
    assert unchecked == ""


def test_it_warns_of_permissions_that_cover_another_application(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write_application(tmp_path, application_id="orders"))
    write_application(tmp_path, application_id="orders-eu")
    assert main(["plan", file, "--config", config(tmp_path, "plan"), "--json"]) == PASSED
    (warning,) = (line for line in json.loads(capsys.readouterr().out)["messages"] if line.startswith("ACLs of"))
    assert "found that they cover orders-eu" in warning


@pytest.mark.parametrize("variable", [CONFIG_VARIABLE, CONFIG_FILE_VARIABLE])
def test_settings_from_the_environment_are_of_one_role_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "settings")
    own = {role.value: f"kafka_{role}" for role in OTHERS}
    application = load_application(write_application(tmp_path, kafka_conn_ids=own))
    found, unchecked = connections_of_others(application, None, dict.fromkeys(OTHERS))
    assert found == {}
    assert unchecked.startswith("permissions of copy, admin, verify were not checked")
