"""A whole expansion on a broker with an authorizer, with four principals and four ways to log in.

No secret is shown.

The application logs in by SCRAM over TLS. Only the replay of its input and the comparison of its output use the
broker's own listener. They stand for the rest of the world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka_rescale.core.acls.needed import needed_acls
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import load_application, topology_of

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.broker_config import to_properties_file
from testbed.broker_security import BrokerSecurity
from testbed.flights_stack import RUN, FlightsStack
from testbed.processes import free_ports, wait_until
from tests.support.airflow.airflow_runs import failures
from tests.support.house.canary import Watch, event_logs, key_material, shown_in_files, shown_to_others, watching
from tests.support.live_expansion import FILE, lifecycle_of
from tests.support.secured import CANARY, binding
from tests.support.token_issuer import TokenIssuer, token_issuer

pytestmark = [pytest.mark.system, pytest.mark.slow]

EXPAND, GREEN = "expand_flights", "flights-g2"
FLIGHTS, RUN_SECONDS = 9_000, 900
OUTPUTS = ("aircraft-totals-output", "aircraft-sessions-output", "airport-hourly-output")


@dataclass(frozen=True)
class World:
    """Everything that runs, and the directories it writes to."""

    stack: FlightsStack
    airflow: AirflowStandalone
    issuer: TokenIssuer
    secrets: Mapping[str, str]
    ui_port: int
    written: tuple[Path, ...]


@dataclass(frozen=True)
class Expanded:
    """How the run ended, and what was seen from outside while it ran."""

    world: World
    run_id: str
    state: str
    watch: Watch


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("security")
    users = {name: f'{name} "{CANARY}"' for name in ("copy", "admin", "application")}
    with token_issuer({"verify": f"verify-{CANARY}"}) as issuer:
        security = BrokerSecurity(directory / "certificates", users, issuer.jwks_url)
        with EmbeddedBroker(directory / "broker", heap="512m", security=security) as broker:
            yield from _started(directory, broker, security, issuer)


def _started(
    directory: Path, broker: EmbeddedBroker, security: BrokerSecurity, issuer: TokenIssuer
) -> Iterator[World]:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    authority = {"ssl.ca.location": str(security.certificates.authority)}
    connections = {
        Role.PLAN: broker.certified_config("plan"),
        Role.COPY: {**servers, **security.login("copy", "SCRAM-SHA-256")},
        Role.ADMIN: {**servers, **security.login("admin", "SCRAM-SHA-512")},
        Role.VERIFY: {**servers, **authority, **issuer.settings("verify")},
    }
    (ui_port,) = free_ports(1)
    events = directory / "events"
    events.mkdir()
    applications = directory / "applications"
    _write_application(applications, ui_port, events)
    _grant(broker, applications / FILE.name)
    config = directory / "application.properties"
    config.write_text(to_properties_file(KafkaConnection(broker.client_config("application")).java()))
    stack = FlightsStack(
        directory / "flights",
        broker.internal_config["bootstrap.servers"],
        guarantee="exactly_once_v2",
        preload=FLIGHTS // 2,
        rate=20,
        limit=FLIGHTS,
        settings={"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "FLIGHTS_CONFIG": str(config)},
    )
    kafka = {f"kafka_{role}": {"conn_type": "kafka", "extra": extra} for role, extra in connections.items()}
    airflow = AirflowStandalone(
        directory / "airflow",
        connections={**kafka, "spark_default": {"conn_type": "spark", "host": "local[2]"}},
        env={**stack.environment, "KAFKA_RESCALE_APPLICATIONS": str(applications)},
    )
    secrets = {f"password of {name}": f'{name} "{CANARY}"' for name in security.users}
    secrets |= {"a password": CANARY, "the key of plan": key_material(security.certificates.issue("plan"))}
    try:
        stack.start_replay()
        stack.await_sent(FLIGHTS // 2)
        assert stack.run("start") == 0
        airflow.start()
        yield World(stack, airflow, issuer, secrets, ui_port, (airflow.directory, events, stack.directory))
    finally:
        airflow.stop()
        stack.stop("flights", GREEN)


def _write_application(directory: Path, ui_port: int, events: Path) -> None:
    directory.mkdir()
    declared: dict[str, Any] = yaml.safe_load(FILE.read_text())
    declared |= {
        "kafka_conn_ids": {str(role): f"kafka_{role}" for role in Role},
        "lifecycle": lifecycle_of(RUN),
        "spark_conf": {
            "spark.ui.enabled": "true",
            "spark.ui.port": str(ui_port),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
        },
    }
    (directory / FILE.name).write_text(yaml.safe_dump(declared, sort_keys=False))
    (directory / declared["topology"]).write_text((FILE.parent / declared["topology"]).read_text())


def _grant(broker: EmbeddedBroker, file: Path) -> None:
    """Grant the roles exactly the documented permissions, and the application what Kafka Streams needs."""
    application = load_application(file)
    principals = {Role.PLAN: "User:CN=plan", **{r: f"User:{r}" for r in (Role.COPY, Role.ADMIN, Role.VERIFY)}}
    needed = needed_acls(application, topology_of(application))
    bindings = [binding(AclBinding, acl, principals[acl.role]) for acl in needed]
    own = [(ResourceType.TOPIC, name, False) for name in ("flights", "planes", *OUTPUTS)]
    own += [(kind, "flights-", True) for kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID)]
    own += [(ResourceType.GROUP, "flights", True)]
    bindings += [
        AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
            "User:application",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind, name, prefixed in own
    ]
    owner = AdminClient(broker.internal_config)
    for future in owner.create_acls(bindings).values():
        future.result(30)


@pytest.fixture(scope="module")
def expanded(world: World) -> Expanded:
    """A run of the DAG, watched from outside from its beginning to its end."""
    stack, client = world.stack, world.airflow.client
    outputs = ClusterAdmin(KafkaConnection(stack.client))
    wait_until(
        lambda: sum(outputs.end_offsets(OUTPUTS[:1])[OUTPUTS[0]].values()), timeout=240, what="the first output"
    )
    with watching(world.secrets, world.ui_port) as watch:
        run_id = client.trigger(EXPAND, {"target": 8, "dry_run": False, "approve_cutover": False})
        state = client.wait_for_run(EXPAND, run_id, timeout=RUN_SECONDS)
    return Expanded(world, run_id, state, watch)


def test_with_exactly_the_documented_permissions_it_is_verified(expanded: Expanded) -> None:
    client, run_id = expanded.world.airflow.client, expanded.run_id
    assert expanded.state == "success", failures(client, EXPAND, run_id)
    assert expanded.world.issuer.given
    stack = expanded.world.stack
    assert stack.run("status", GREEN) == 0
    stack.finish_replay()
    stack.await_equal(GREEN)


def test_no_secret_is_on_a_command_line_or_in_the_ui_of_spark(expanded: Expanded) -> None:
    watch = expanded.watch
    assert watch.found == set()
    assert any("SparkSubmit" in program for program in watch.programs)
    # `verify` has little left to compare behind a proof, so its UI may be gone before a page of it is read.
    jobs = {name.split()[1] for name in watch.applications}
    assert {"catch_up", "prove"} <= jobs, watch.applications


def test_no_secret_is_in_logs_xcoms_rendered_fields_and_event_logs(expanded: Expanded) -> None:
    world = expanded.world
    tokens = {f"token {n}": token for n, token in enumerate(world.issuer.given)}
    # One of these files is Airflow's database, with XComs and rendered fields.
    assert (world.airflow.directory / "airflow.db").stat().st_size
    assert event_logs(world.written[1])
    assert shown_in_files(world.written, {**world.secrets, **tokens}) == set()


def test_only_who_needs_them_has_secrets_in_an_environment_that_nobody_else_can_read(expanded: Expanded) -> None:
    """Airflow passes settings to Spark in the environment. The application has a configuration of its own."""
    holders = expanded.watch.holders
    assert any("SparkSubmit" in program for program in holders.values())
    assert not any(own in program for program in holders.values() for own in ("FlightsApplication", "run.sh"))
    assert expanded.world.airflow.client.is_healthy(), "its processes are looked at"
    living = [pid for pid in holders if Path(f"/proc/{pid}").exists()]
    assert living
    assert not any(shown_to_others(pid) for pid in living)
