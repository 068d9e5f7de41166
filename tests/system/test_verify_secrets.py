"""``verify`` reads by a Java client, which gets its secrets as Spark options. They must not be visible anywhere.

One broker, one small expansion, and a run of the job for each mechanism. ``test_security.py`` has a whole
expansion with one mechanism per role.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from testbed.broker import EmbeddedBroker
from testbed.broker_security import BrokerSecurity
from testbed.processes import free_ports
from tests.integration.spark_job_helpers import ROOT, submit_verify
from tests.support.expansion.expanded import Expanded
from tests.support.house.canary import event_logs, key_material, shown_in, shown_in_files, watching
from tests.support.secured import CANARY
from tests.support.signed_tokens import HANDLER, SECRET, URL, compiled
from tests.support.token_issuer import TokenIssuer, token_issuer

pytestmark = [pytest.mark.system, pytest.mark.slow]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "certificate", "OAUTHBEARER", "OAUTHBEARER by a function")
USER = "verify"
PASSWORD = f'{USER} "{CANARY}"'
CLIENT_SECRET = f"client-{CANARY}"
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class World:
    """An expansion to verify, and the ways to log in.

    :param secrets: secrets by their kind. Tokens are added when the issuer gives them out.
    """

    expanded: Expanded
    settings: Mapping[str, dict[str, str]]
    secrets: Mapping[str, str]
    issuer: TokenIssuer


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("verify-secrets")
    with token_issuer({USER: CLIENT_SECRET}) as issuer:
        security = BrokerSecurity(directory / "certificates", {USER: PASSWORD}, issuer.jwks_url)
        with EmbeddedBroker(directory / "broker", heap="384m", security=security) as broker:
            _allow(broker, f"User:{USER}", f"User:CN={USER}")
            expanded = Expanded(broker.internal_config, "shop", int(time.time() * 1000) - HOUR_MS)
            expanded.write()
            key = key_material(security.certificates.issue(USER))
            secrets = {"password": PASSWORD, "canary": CANARY, "key": key, "client secret": CLIENT_SECRET}
            yield World(expanded, _settings(broker, security, issuer), secrets, issuer)


SIGNED = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "oauth_cb": "tests.support.signed_tokens.oauth_cb",
    "sasl.login.callback.handler.class": HANDLER,
}


def _settings(broker: EmbeddedBroker, security: BrokerSecurity, issuer: TokenIssuer) -> dict[str, dict[str, str]]:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    authority = {"ssl.ca.location": str(security.certificates.authority)}
    by_password = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    return {
        **{name: {**servers, **security.login(USER, name)} for name in by_password},
        "certificate": broker.certified_config(USER),
        "OAUTHBEARER": {**servers, **authority, **issuer.settings(USER)},
        MECHANISMS[-1]: {**servers, **authority, **SIGNED},
    }


def _allow(broker: EmbeddedBroker, *principals: str) -> None:
    """Allow the users everything. Other tests check which permissions they need."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    every = (ResourcePatternType.LITERAL, "*", AclOperation.ALL, AclPermissionType.ALLOW)
    pattern, host, operation, permission = every
    asked = [
        AclBinding(kind, "*", pattern, principal, host, operation, permission)
        for kind in kinds
        for principal in principals
    ]
    owner = AdminClient(broker.internal_config)
    for future in owner.create_acls(asked).values():
        future.result(30)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_verify_shows_no_secret_whatever_it_logs_in_by(
    world: World, tmp_path: Path, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ui_port,) = free_ports(1)
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui_port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    jars: list[Path] = []
    if mechanism == MECHANISMS[-1]:
        # A signer's credentials are in the environment. Its class for Java is in a jar of the user.
        monkeypatch.setenv(URL, f"{world.issuer.url}/token")
        monkeypatch.setenv(SECRET, f"{USER}:{CLIENT_SECRET}")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        jars.append(compiled(tmp_path))
    given = len(world.issuer.given)
    with watching(world.secrets, ui_port) as watch:
        done = submit_verify(world.settings[mechanism], world.expanded.application, tmp_path, conf, jars)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"[-6000:]
    assert "PASSED" in done.stdout

    assert any("SparkSubmit" in program for program in watch.programs)
    assert any("verify" in name for name in watch.applications), "its UI was looked at"
    assert watch.found == set()
    secrets = {**world.secrets, **{f"token {n}": token for n, token in enumerate(world.issuer.given)}}
    said = f"{done.stdout}{done.stderr}{json.dumps(world.expanded.control.read().report)}"
    assert shown_in(said.encode(), secrets) == set()
    assert event_logs(events)
    assert shown_in_files([events], secrets) == set()
    if mechanism.startswith("OAUTHBEARER"):
        assert len(world.issuer.given) >= given + 2, "librdkafka and Java have logged in"
