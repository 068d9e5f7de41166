"""A broker that authorizes: TLS with PLAIN, SCRAM or OAUTHBEARER, mutual TLS, and the KRaft authorizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka_rescale.kafka.client.sasl_settings import jaas_quoted

from testbed.certificates import Certificates
from testbed.processes import wait_until

MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
ITERATIONS = 4096
SECONDS = 30.0

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"


@dataclass(frozen=True)
class BrokerSecurity:
    """Who may log in. ACLs say what a user may do; without ACLs a user may do nothing.

    Listener ``CLIENT`` is SASL_SSL, and ``MTLS`` asks for certificates. ``INTERNAL`` and the controller's listener
    are plain, and meant for the process that has started the broker. There is no login there, so every client is
    ``User:ANONYMOUS``, a super user.

    :param directory: directory of the certificates.
    :param users: passwords by user name, for PLAIN and both SCRAM mechanisms.
    :param jwks_url: where the keys of an OAUTHBEARER token issuer are; without it there is no OAUTHBEARER.
    """

    directory: Path
    users: Mapping[str, str] = field(repr=False)
    jwks_url: str = ""

    @property
    def certificates(self) -> Certificates:
        """The authority that has signed the broker's certificate and the clients'."""
        return Certificates(self.directory)

    def properties(self) -> dict[str, str]:
        """Return the broker's properties, except the listeners' addresses and protocols."""
        certificates = self.certificates
        scram = {f"listener.name.client.{name.lower()}.sasl.jaas.config": _SCRAM for name in MECHANISMS}
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.issue("broker")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.authority),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.client.sasl.enabled.mechanisms": ",".join(self._mechanisms()),
            **scram,
            **self._plain(),
            **self._oauth(),
        }

    def jvm_options(self) -> tuple[str, ...]:
        """Return options of the broker's JVM. Kafka 4 fetches keys only from an address that is allowed there."""
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.jwks_url}",) if self.jwks_url else ()

    def create_users(self, admin: AdminClient) -> None:
        """Create the SCRAM credentials, and return when the broker has them.

        This sends a request, because the command line of ``kafka-storage format --add-scram`` would show them.
        """
        if not self.users:
            return
        # A request may name a user only once.
        for mechanism in MECHANISMS.values():
            credentials = ScramCredentialInfo(mechanism, ITERATIONS)
            asked = [UserScramCredentialUpsertion(u, credentials, p.encode()) for u, p in self.users.items()]
            for future in admin.alter_user_scram_credentials(asked).values():
                future.result(timeout=SECONDS)

        def known() -> bool:
            described = admin.describe_user_scram_credentials(list(self.users))
            return all(
                len(each.result(timeout=SECONDS).scram_credential_infos) == len(MECHANISMS)
                for each in described.values()
            )

        wait_until(known, timeout=SECONDS, what="the users' credentials")

    def login(self, user: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return librdkafka settings of a user of the listener ``CLIENT``, without its address."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.users[user],
            "ssl.ca.location": str(self.certificates.authority),
        }

    def certificate(self, common_name: str) -> dict[str, str]:
        """Return librdkafka settings of a client of the listener ``MTLS``, without its address."""
        file = str(self.certificates.issue(common_name))
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.certificates.authority),
            "ssl.certificate.location": file,
            "ssl.key.location": file,
        }

    def _mechanisms(self) -> tuple[str, ...]:
        return (*MECHANISMS, *(("PLAIN",) if self.users else ()), *(("OAUTHBEARER",) if self.jwks_url else ()))

    def _plain(self) -> dict[str, str]:
        if not self.users:
            return {}
        users = " ".join(f"user_{name}={jaas_quoted(password)}" for name, password in self.users.items())
        return {"listener.name.client.plain.sasl.jaas.config": f"{_PLAIN} required {users};"}

    def _oauth(self) -> dict[str, str]:
        if not self.jwks_url:
            return {}
        of_listener = "listener.name.client.oauthbearer"
        return {
            f"{of_listener}.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
            f"{of_listener}.sasl.server.callback.handler.class": f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": self.jwks_url,
        }
