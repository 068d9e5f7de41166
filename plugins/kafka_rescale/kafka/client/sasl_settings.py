"""How to log in: the settings of Java clients and of kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.kafka.client.oauth_token import OAUTHBEARER, ClientCredentials
from kafka_rescale.kafka.client.signed_token import SIGNER, is_signed, java_of_signed, signed_tokens

_SECURITY = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    OAUTHBEARER: f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}

_INSTEAD = (
    "Use a user with a password, a client of a token issuer, or a function that signs tokens (oauth_cb); others "
    "are not supported."
)
_OF_MSK = (
    "Only Java clients have this mechanism. Set OAUTHBEARER, by which Amazon MSK knows the same IAM identities, "
    f"and install {SIGNER}, or name a function that signs tokens as oauth_cb."
)


def java_sasl(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a Java client that logs in.

    :param config: librdkafka settings.
    :raises InvalidInput: the mechanism is not known here, or OAUTHBEARER lacks a setting that it needs.
    """
    mechanism = mechanism_of(config)
    java = {"sasl.mechanism": mechanism}
    if is_signed(config):
        return java | java_of_signed(config)
    if mechanism == OAUTHBEARER:
        credentials = ClientCredentials.of(config)
        options = {"clientId": credentials.client_id, "clientSecret": credentials.client_secret}
        options |= {"scope": credentials.scope} if credentials.scope else {}
        options |= {f"extension_{name}": value for name, value in credentials.extensions().items()}
        if credentials.authority:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": credentials.authority}
        # Kafka 3.4 and later; before that the class was in a package of its own.
        java["sasl.login.callback.handler.class"] = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
        java["sasl.oauthbearer.token.endpoint.url"] = credentials.endpoint
    else:
        options = {"username": config.get("sasl.username", ""), "password": config.get("sasl.password", "")}
    written = " ".join(f"{name}={jaas_quoted(value)}" for name, value in options.items())
    return {**java, "sasl.jaas.config": f"{_LOGIN_MODULES[mechanism]} required {written};"}


def kafka_python_sasl(config: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a kafka-python client that logs in.

    :param config: librdkafka settings.
    :raises InvalidInput: the mechanism is not known here, or OAUTHBEARER lacks a setting that it needs.
    """
    mechanism = mechanism_of(config)
    if mechanism == OAUTHBEARER:
        tokens = signed_tokens(config) if is_signed(config) else ClientCredentials.of(config)
        # kafka-python requires this class. Our own classes are not derived from it, but registered here: most
        # processes have no client of kafka-python, and its import takes longer than that of all our own modules.
        from kafka.net.sasl.oauth import AbstractTokenProvider

        AbstractTokenProvider.register(type(tokens))
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": tokens}
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": config.get("sasl.username", ""),
        "sasl_plain_password": config.get("sasl.password", ""),
    }


def mechanism_of(config: Mapping[str, str]) -> str:
    """Return the mechanism by which to log in.

    :raises InvalidInput: the mechanism is not known here.
    """
    if refused := wrong_mechanism(config):
        raise refused
    return _mechanism(config)


def wrong_mechanism(config: Mapping[str, str]) -> InvalidInput | None:
    """Return the error about a mechanism that is not known here; None if it is known."""
    if (mechanism := _mechanism(config)) in _LOGIN_MODULES:
        return None
    return InvalidInput(
        "Kafka connection, sasl.mechanism",
        found=repr(mechanism),
        expected=f"one of {', '.join(_LOGIN_MODULES)}",
        remedy=_OF_MSK if mechanism == "AWS_MSK_IAM" else _INSTEAD,
    )


def _mechanism(config: Mapping[str, str]) -> str:
    # librdkafka's default is GSSAPI. The other clients here can't use it, so a mechanism must be named.
    return config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI"))


def jaas_quoted(text: str) -> str:
    """Return a text in quotes, as the value of an option in a JAAS line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
