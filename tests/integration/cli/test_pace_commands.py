"""The pace commands on a real broker: they are noted, shown by `status`, and refused if nothing copies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from kafka_rescale.cli.exit_codes import PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.kafka.control.control_topic import ControlTopic

from tests.support.application_files import write_application
from tests.support.plans import plan_for

pytestmark = pytest.mark.integration


@pytest.fixture
def config(client: Mapping[str, str], tmp_path: Path) -> str:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{k} = {v}\n" for k, v in client.items()))
    return str(file)


def test_a_limit_a_pause_and_a_resume_from_a_shell(
    client: Mapping[str, str], config: str, tmp_path: Path, unique: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write_application(tmp_path, application_id=unique))
    control = ControlTopic(KafkaConnection(dict(client)), unique)
    control.ensure(1)

    def shell(command: str, *options: str, code: int = PASSED) -> str:
        assert main([command, file, "--config", config, *options]) == code
        said = capsys.readouterr()
        return said.out + said.err

    refused = shell("pause", code=REFUSED)
    assert f"pace of {unique}: found no expansion; expected an expansion that copies." in refused

    journal_store.begin(control, plan_for(unique), "r", now_ms=1)
    assert "The pace: at most 2.0 MB/s: " in shell("pace", "--bytes-per-second", "2000000", "--reason", "sale")
    assert "The copy is paused by " in shell("pause")
    status = shell("status")
    assert "The copy is paused by " in status
    assert "(sale)" in status
    found = json.loads(shell("status", "--json"))["pace"]
    assert (found["limit"], found["limited"]["reason"]) == (2_000_000, "sale")
    assert "paused by" not in shell("resume")
    assert "The pace: no limit: " in shell("pace")

    journal_store.advance(control, Phase.QUIESCING, now_ms=2)
    assert "only speed matters" in shell("pause", code=REFUSED)
    pace = control.read().pace
    assert pace is not None
    assert pace.paused is None
