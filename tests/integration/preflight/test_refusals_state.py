"""Refusals because of what runs, another expansion, or existing topics and offsets. They leave no trace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from kafka_rescale.cli.exit_codes import REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import Fenced, InvalidInput, LeaseHeld, Outage, PreflightRefused
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.values import Value
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.broker import EmbeddedBroker
from tests.support.group_member import group_member
from tests.support.small_application import START_MS, Made, declared, write
from tests.support.small_cluster import create, make, picture, produce, run_preflight

pytestmark = pytest.mark.integration
Client = Mapping[str, str]


def refusal(run: Callable[[], object], kind: type[Exception] = PreflightRefused) -> str:
    """Return the message of a refused preflight."""
    with pytest.raises(kind) as error:
        run()
    return str(error.value)


def planned(client: Client, directory: Path, name: str, target: int = 8) -> Plan:
    """The plan of a sound application."""
    plan = run_preflight(client, directory, name, target).plan
    assert plan is not None
    return plan


def remember(client: Client, name: str, **concerns: Value) -> None:
    """Write to the control topic what an earlier run would have left there."""
    ControlTopic(KafkaConnection(dict(client)), name).update(lambda _: concerns)


def test_a_target_that_is_reached_already_is_nothing_to_do(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    result = run_preflight(client, tmp_path, unique, target=4)
    assert (result.plan, result.noop) == (None, True)
    assert result.messages[0] == f"{unique} is already at 4 partitions"


def test_another_target_while_a_rescale_is_in_progress(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    plan = planned(client, tmp_path, unique)
    remember(client, unique, journal=Journal(plan=plan, owner="expand/run-1"))
    assert refusal(lambda: run_preflight(client, tmp_path, unique, target=6)) == (
        f"- application '{unique}': found an expansion to 8 partitions in progress (phase warming, by "
        "expand/run-1); expected no expansion in progress when 6 are asked for. Finish it by a run with "
        "target 8 and the settings that it was begun with, or roll it back; then ask again."
    )
    continued = run_preflight(client, tmp_path, unique, target=8)
    assert continued.plan == plan
    assert continued.messages[0] == "continues in phase warming"


def test_wrong_commands_are_found_before_anything_is_touched(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    before, shell, green = picture(client, unique), declared(unique)["lifecycle"], f"{unique}-g2"
    for wrong, said in {
        "./absent.sh {application_id}": f"lifecycle command status of {unique}: found no program ./absent.sh",
        "sh -c 'exit 1' {application_id}": f"lifecycle status of {unique}: found exit code 1 ()",
        "true {application_id}": f"lifecycle status of {green}: found running, before it has ever been started",
    }.items():
        lifecycle = {**shell, "status": wrong}
        message = refusal(lambda given=lifecycle: run_preflight(client, tmp_path, unique, lifecycle=given))
        assert message.startswith(f"- {said}; expected ")
    assert picture(client, unique) == before


def test_a_rescale_that_another_run_holds(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    lease = Lease(owner="expand/run-0", epoch=1, target=8, expires_at_ms=START_MS + 60_000)
    remember(client, unique, lease=lease)
    message = refusal(lambda: run_preflight(client, tmp_path, unique), LeaseHeld)
    assert message == (
        f"application '{unique}': found a rescale to 8 partitions by expand/run-0 that has not ended; expected no "
        "other rescale of it. Wait for expand/run-0, or stop it; `python -m kafka_rescale status FILE` shows "
        "what it does."
    )
    assert run_preflight(client, tmp_path, unique, finished=True).plan is not None
    assert run_preflight(client, tmp_path, unique, owner="expand/run-0").plan is not None
    assert "has not ended" in refusal(lambda: run_preflight(client, tmp_path, unique, finished=None), LeaseHeld)
    remember(client, unique, lease=lease.model_copy(update={"expires_at_ms": START_MS}))
    assert "has not ended" in refusal(lambda: run_preflight(client, tmp_path, unique, finished=False), LeaseHeld)
    assert run_preflight(client, tmp_path, unique, finished=None).plan is not None


def test_a_run_that_has_lost_the_lease_creates_nothing(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    application = load_application(write(tmp_path, unique))
    plan = planned(client, tmp_path, unique)
    lease = Lease(owner="expand/run-2", epoch=2, target=8, expires_at_ms=START_MS + 60_000)
    remember(client, unique, lease=lease, journal=Journal(plan=plan, owner="expand/run-2"))
    before = picture(client, unique)

    def expand(owner: str) -> list[str]:
        return expand_stage(application, KafkaConnection(dict(client)), owner=owner, stage=1)

    assert "expected expand/run-1" in refusal(lambda: expand("expand/run-1"), Fenced)
    assert picture(client, unique) == before
    assert expand("expand/run-2")


def test_a_topic_with_foreign_data_in_the_way(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    plan = planned(client, tmp_path, unique)
    green = f"{unique}-g2-totals-changelog"
    create(client, [NewTopic(green, 8)])
    produce(client, {green: [Made(0, b"a"), Made(1, b"b"), Made(7, b"c")]})
    lost = refusal(lambda: run_preflight(client, tmp_path, unique))
    assert lost.startswith(
        f"- application '{unique}': found {green}, while topic '_kafka_rescale' knows of no expansion"
    )
    assert "--delete" not in lost
    remember(client, unique, generations=Generations(running=unique))
    assert refusal(lambda: run_preflight(client, tmp_path, unique)) == (
        f"- topic '{green}': found 3 records in a topic that no expansion of this application has made; "
        "expected a name that is free for the next generation. If it is not needed, delete it "
        f"(`kafka-topics.sh --delete --topic {green}`)."
    )
    remember(client, unique, journal=Journal(plan=plan, phase=Phase.ROLLED_BACK))
    assert run_preflight(client, tmp_path, unique).plan == plan


def test_running_when_it_should_be_stopped_and_the_reverse(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    assert refusal(lambda: run_preflight(client, tmp_path, unique, expected=ExpectedState.RUNNING)) == (
        f"- application '{unique}': found group {unique} without members (state Dead); expected a running "
        "application. Start it, and wait until its group is Stable."
    )
    assert (
        f"{unique} does not run: its group has no member (state Dead)."
        in run_preflight(client, tmp_path, unique).messages
    )
    assert run_preflight(client, tmp_path, unique, expected=ExpectedState.STOPPED).plan is not None
    with group_member(client, unique, f"{unique}-orders"):
        assert refusal(lambda: run_preflight(client, tmp_path, unique, expected=ExpectedState.STOPPED)) == (
            f"- application '{unique}': found 1 member in group {unique} (state Stable); expected a stopped "
            "application. Stop every instance; members that died are gone after session.timeout.ms."
        )
        assert run_preflight(client, tmp_path, unique, expected=ExpectedState.RUNNING).plan is not None


def test_the_running_generation_comes_from_the_control_topic(client: Client, tmp_path: Path, unique: str) -> None:
    make(client, unique)
    remember(client, unique, generations=Generations(running=f"{unique}-g2", generation=2, partitions=4))
    assert refusal(lambda: run_preflight(client, tmp_path, unique)).startswith(
        f"- application '{unique}-g2': found none of its internal topics on the cluster"
    )


def test_a_refused_preflight_and_a_good_one_leave_the_cluster_as_it_was(
    client: Client, tmp_path: Path, unique: str
) -> None:
    make(client, unique)
    before = picture(client, unique)
    refusal(lambda: run_preflight(client, tmp_path, unique, target=2))
    refusal(lambda: run_preflight(client, tmp_path, unique, expected=ExpectedState.RUNNING))
    planned(client, tmp_path, unique)
    assert picture(client, unique) == before


def test_no_broker(tmp_path: Path) -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    message = refusal(lambda: run_preflight(nobody, tmp_path, "shop"), Outage)
    assert message.startswith("Kafka connection to 127.0.0.1:1: found ")
    assert message.endswith(
        "expected a broker that answers. Check bootstrap.servers and security.protocol of the connection, the "
        "network and the brokers."
    )


def test_wrong_credentials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = {"alice": "alice-secret"}
    with EmbeddedBroker(tmp_path / "broker", heap="384m", sasl_users=users) as secured:
        right = secured.client_config("alice")
        make(right, "shop")
        assert run_preflight(right, tmp_path, "shop").plan is not None
        wrong = {**right, "sasl.password": "guess"}
        message = refusal(lambda: run_preflight(wrong, tmp_path, "shop"), InvalidInput)
        (tmp_path / "wrong.json").write_text(json.dumps(wrong))
        options = ["--config", str(tmp_path / "wrong.json")]
        assert main(["status", str(write(tmp_path, "shop")), *options]) == REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    # The message of librdkafka has the time that the attempt took.
    assert re.sub(r"\d+ms", "", line) == re.sub(r"\d+ms", "", message)
    assert "Invalid username or password" in message
    assert "Correct sasl.mechanism, sasl.username, sasl.password or ssl.* in the connection." in message
    assert "guess" not in message


def test_the_concerns_are_named_as_the_control_topic_names_them() -> None:
    assert {Concern.LEASE, Concern.JOURNAL, Concern.GENERATIONS} == {"lease", "journal", "generations"}
