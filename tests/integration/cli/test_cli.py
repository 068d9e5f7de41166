"""The commands on a real broker: what they print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.cli.exit_codes import FINDINGS, OUTAGE, PASSED, REFUSED, exit_code
from kafka_rescale.cli.main import main
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import Fenced, InvalidInput, LeaseHeld, Outage, Refused, UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic

from tests.support.small_application import write
from tests.support.small_cluster import make, picture, run_preflight

pytestmark = pytest.mark.integration
Client = Mapping[str, str]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def config(client: Client, tmp_path: Path) -> str:
    """A properties file with the broker's address."""
    file = tmp_path / "client.properties"
    file.write_text("# broker of the tests\n" + "".join(f"{k} = {v}\n" for k, v in client.items()))
    return str(file)


def test_validate_needs_no_broker(tmp_path: Path, capsys: Captured) -> None:
    file = str(write(tmp_path, "shop"))
    assert main(["validate", file]) == PASSED
    assert "shop: the file is valid; 8 partitions wanted, mode blue_green." in capsys.readouterr().out
    assert main(["validate", file, "--json"]) == PASSED
    assert json.loads(capsys.readouterr().out)["subtopologies"][1]["stores"] == [
        "customers",
        "totals",
        "hourly",
        "visits",
    ]


def test_an_invalid_file_is_one_message_and_no_traceback(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, "shop", partitions=0)
    assert main(["validate", str(file)]) == REFUSED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith(": partitions: found 0; expected 1 or more. Correct the value.\n")
    assert len(captured.err.splitlines()) == 1


def test_describe(client: Client, config: str, tmp_path: Path, unique: str, capsys: Captured) -> None:
    make(client, unique)
    file = str(write(tmp_path, unique))
    assert main(["describe", file, "--config", config, "--json"]) == PASSED
    found = json.loads(capsys.readouterr().out)
    topics = {t["topic"]: t for t in found["topics"]}
    assert topics[f"{unique}-visits-changelog"] == {
        "topic": f"{unique}-visits-changelog",
        "role": "changelog, session",
        "partitions": 4,
        "replicas": 1,
        "records at most": 24,
        "lag": "",
    }
    assert topics[f"{unique}-by-customer-repartition"]["lag"] == 24
    assert main(["describe", file, "--config", config]) == PASSED
    assert f"{unique}-hourly-changelog" in capsys.readouterr().out


def test_plan_and_its_refusals(client: Client, config: str, tmp_path: Path, unique: str, capsys: Captured) -> None:
    make(client, unique)
    file = str(write(tmp_path, unique))
    before = picture(client, unique)
    assert main(["plan", file, "--target", "6", "--config", config]) == PASSED
    out = capsys.readouterr().out
    assert f"{unique} -> {unique}-g2, 6 partitions" in out
    assert f"{unique}-g2-visits-changelog" in out
    assert main(["plan", file, "--target", "4", "--config", config, "--json"]) == PASSED
    assert json.loads(capsys.readouterr().out)["plan"] is None
    assert main(["plan", file, "--target", "6", "--expected", "running", "--config", config]) == REFUSED
    assert "expected a running application" in capsys.readouterr().err
    assert main(["plan", file, "--target", "2", "--config", config]) == REFUSED
    assert [line.partition(": found")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"- input topic '{unique}-orders'",
        f"- input topic '{unique}-customers'",
    ]
    assert picture(client, unique) == before


def test_status_before_and_during_an_expansion(
    client: Client, config: str, tmp_path: Path, unique: str, capsys: Captured
) -> None:
    make(client, unique)
    file = str(write(tmp_path, unique))
    assert main(["status", file, "--config", config]) == PASSED
    assert capsys.readouterr().out.splitlines()[:5] == [
        f"running: {unique}, generation 1 (never rescaled)",
        "expansion: none",
        f"group: {unique} is Dead: it has NO MEMBER",
        f"needs a person: Group {unique} has no member (Dead).",
        "lease: free",
    ]
    plan = run_preflight(client, tmp_path, unique).plan
    assert plan is not None
    control = ControlTopic(KafkaConnection(dict(client)), unique)
    lease = Lease(owner="expand/run-1", epoch=1, target=8, expires_at_ms=1)
    control.update(lambda _: {"journal": Journal(plan=plan), "lease": lease})
    at = PartitionProgress(topic=f"{unique}-totals-changelog", partition=0, position=3, end=6)
    control.put_result(JobResult(job="restore/1", run="r", attempt=1, state="done", records=96, partitions=(at,)))
    assert main(["status", file, "--config", config, "--json"]) == PASSED
    found = json.loads(capsys.readouterr().out)
    assert (found["phase"], found["target"], found["lease"]["owner"]) == ("warming", 8, "expand/run-1")
    assert found["lags"] == [
        {"stage": plan.stages[0].name, "partitions": 16, "worst": None, "without_position": 16}
    ]
    assert found["results"]["restore/1"]["records"] == 96
    assert main(["status", file, "--config", config]) == PASSED
    assert "expansion to 8 partitions: warming, attempt 1" in capsys.readouterr().out


def test_status_reads_how_far_a_bridge_is_behind_whatever_its_last_run_has_left(
    client: Client, config: str, tmp_path: Path, unique: str, capsys: Captured
) -> None:
    make(client, unique)
    file, topic = str(write(tmp_path, unique)), f"{unique}-customers"
    plan = run_preflight(client, tmp_path, unique).plan
    assert plan is not None
    bridge = Move(
        kind=MoveKind.INPUT, source=topic, target="x", store=topic, source_partitions=4, target_partitions=8
    )
    first = plan.stages[0].model_copy(update={"bridges": (bridge,)})
    plan = plan.model_copy(update={"stages": (first, *plan.stages[1:])})
    connection = KafkaConnection(dict(client))
    admin, control = ClusterAdmin(connection), ControlTopic(connection, unique)
    journal, known = Journal(plan=plan, phase=Phase.COMPLETE), Bridge(plan=plan.fingerprint, begun=True)
    control.update(lambda _: {"journal": journal, "bridge": known})

    def status(state: str) -> str:
        at = PartitionProgress(topic=topic, partition=0, position=3, end=3)
        control.put_result(
            JobResult(job="bridge", run="r", attempt=1, state=state, partitions=(at,), as_of_ms=now_ms())
        )
        assert main(["status", file, "--config", config]) == PASSED
        return capsys.readouterr().out

    assert "bridge: carries on, 4 of 4 partitions not begun" in status("carrying")
    admin.commit(plan.bridge_group, admin.end_offsets([topic]))
    assert "bridge: carries on, 0 offsets behind\n" in status("carrying")
    producer = Producer({**client, "transactional.id": unique})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce(topic, b"v", b"k", partition=1)
    producer.flush(30)
    assert "bridge: carries on, 10 offsets behind\n" in status("carrying"), "of a transaction that is open"
    producer.abort_transaction(30)
    assert "bridge: NOT AT WORK (failed), 11 offsets behind" in status("failed"), "with its marker"
    admin.grow_topic(topic, 8)
    assert "11 offsets behind, 4 of 8 partitions not begun" in status("carrying")


@pytest.mark.parametrize(
    ("phase", "code"), [(Phase.WARMING, REFUSED), (Phase.ROLLED_BACK, PASSED), (Phase.ROLLING_BACK, REFUSED)]
)
def test_a_lease_hinders_a_plan_only_while_its_expansion_is_in_progress(
    client: Client, config: str, tmp_path: Path, unique: str, capsys: Captured, phase: Phase, code: int
) -> None:
    make(client, unique)
    file = str(write(tmp_path, unique))
    plan = run_preflight(client, tmp_path, unique).plan
    assert plan is not None
    lease = Lease(owner="rollback/run-1", epoch=1, target=8, expires_at_ms=2**60)
    control = ControlTopic(KafkaConnection(dict(client)), unique)
    control.update(lambda _: {"journal": Journal(plan=plan, phase=phase), "lease": lease})
    assert main(["plan", file, "--config", config]) == code
    assert ("by rollback/run-1 that has not ended" in "".join(capsys.readouterr())) == (code == REFUSED)


def test_the_connection_comes_from_the_environment_if_not_from_a_file(
    client: Client, tmp_path: Path, unique: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(write(tmp_path, unique))
    extra = json.dumps(dict(client))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    assert main(["status", file]) == PASSED
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", "{")
    assert main(["status", file]) == REFUSED
    assert "environment variable AIRFLOW_CONN_KAFKA_DEFAULT: found JSONDecodeError" in capsys.readouterr().err
    monkeypatch.setenv("KAFKA_RESCALE_KAFKA_CONFIG", extra)
    assert main(["status", file]) == PASSED


def test_verify_before_a_cutover(config: str, tmp_path: Path, unique: str, capsys: Captured) -> None:
    assert main(["verify", str(write(tmp_path, unique)), "--config", config]) == REFUSED
    assert capsys.readouterr().err == (
        f"verification of {unique}: found no expansion; expected an expansion whose cutover has started the new "
        "generation. Run verify after the cutover. If that has failed, clear its task: it goes on where it was.\n"
    )


def test_nobody_answers(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "nobody.json").write_text('{"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hidden"}')
    assert main(["status", str(write(tmp_path, "shop")), "--config", str(tmp_path / "nobody.json")]) == OUTAGE
    err = capsys.readouterr().err
    assert err.startswith("Kafka connection to 127.0.0.1:1: found ")
    assert len(err.splitlines()) == 1
    assert "hidden" not in err


@pytest.mark.parametrize("text", ['{"bootstrap.servers": ', "bootstrap.servers 127.0.0.1:1\n"])
def test_settings_that_can_not_be_read_are_not_quoted(text: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "bad.conf").write_text(f"{text}sasl.password hidden")
    assert main(["status", str(write(tmp_path, "shop")), "--config", str(tmp_path / "bad.conf")]) == REFUSED
    err = capsys.readouterr().err
    assert "expected JSON or lines `name=value` with librdkafka settings such as bootstrap.servers" in err
    assert "hidden" not in err


def test_a_command_that_does_not_exist(capsys: Captured) -> None:
    assert main(["explode", "shop.yaml"]) == REFUSED
    assert "No such command 'explode'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InvalidInput, REFUSED),
        (Refused, REFUSED),
        (LeaseHeld, REFUSED),
        (Outage, OUTAGE),
        (UnsafeState, FINDINGS),
        (Fenced, FINDINGS),
    ],
)
def test_exit_codes(kind: type[InvalidInput], code: int) -> None:
    assert exit_code(kind("a", found="b", expected="c", remedy="d")) == code
