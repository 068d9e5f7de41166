"""OAUTHBEARER by tokens that a function signs: the one named as ``oauth_cb``, or Amazon MSK's signer.

Airflow's Kafka provider reads a connection in the same way. So a connection of its operators works here too.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import RLock
from typing import Any

from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import ClusterOutage, InvalidInput
from kafka_rescale.kafka.client.oauth_token import OAUTHBEARER, USED_FOR

CALLBACK = "oauth_cb"
ARGUMENT = "sasl.oauthbearer.config"
METHOD = "sasl.oauthbearer.method"
HANDLER, JAAS = "sasl.login.callback.handler.class", "sasl.jaas.config"
JAVA_OF_SIGNED = frozenset({HANDLER, JAAS})
"""Settings of Java clients that a connection with signed tokens may have, because Java can't call a Python
function."""

SIGNER = "aws-msk-iam-sasl-signer-python"
MSK_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
_KAFKAS = "org.apache.kafka.common.security.oauthbearer"
KNOWN_HANDLERS = (
    MSK_HANDLER,
    f"{_KAFKAS}.OAuthBearerLoginCallbackHandler",
    f"{_KAFKAS}.secured.OAuthBearerLoginCallbackHandler",
    f"{_KAFKAS}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
)
"""The classes of Amazon and of Kafka itself that give tokens to a Java client."""
MILLISECONDS_FROM = 10**11
"""A time from here on is in ms: in seconds it would be after the year 5000."""

_LOGIN_MODULE = f"{_KAFKAS}.OAuthBearerLoginModule"
_OPTION = r"""[\w.-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.:/=+-]+)"""
_JAAS = re.compile(rf"\s*{re.escape(_LOGIN_MODULE)}\s+required(?:\s+{_OPTION})*\s*;\s*")
_MSK = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::\d+)?(?:$|[,\s])")
_EXPECTED = "a function of the text sasl.oauthbearer.config that returns (token, its end in seconds since 1970)"

_lock = RLock()

Token = tuple[str, float, str, dict[str, str]]
"""Token, end of its life in seconds since the epoch, principal, extensions: what librdkafka asks for."""

_log = logging.getLogger(__name__)


def is_signed(config: Mapping[str, str]) -> bool:
    """Return whether a function signs the tokens of a connection."""
    logs_in = config.get("security.protocol", "").upper().startswith("SASL_")
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms"))
    is_oidc = config.get(METHOD, "").lower() == "oidc"
    by_function = CALLBACK in config or bool(msk_region(config) and not is_oidc)
    return logs_in and mechanism == OAUTHBEARER and by_function


def msk_region(config: Mapping[str, str]) -> str:
    """Return the AWS region in the names of Amazon MSK's brokers; empty for brokers of others."""
    found = _MSK.search(config.get("bootstrap.servers", "").lower())
    return found[1] if found else ""


def signed_tokens(config: Mapping[str, str]) -> SignedTokens:
    """Return the object that gives the tokens of a connection. All clients in a process that use it share it.

    :param config: librdkafka settings for which ``is_signed`` holds.
    :raises InvalidInput: a token issuer is named too, or the function or MSK's signer can't be imported.
    """
    if config.get(METHOD, "default").lower() != "default":
        raise InvalidInput(
            f"Kafka connection, {CALLBACK} and {METHOD}",
            found=f"a function and {config[METHOD]!r}",
            expected="one of them: a function signs the tokens, or an issuer gives them",
            remedy="Remove the one that is not to be used.",
        )
    return _tokens(config.get(CALLBACK, ""), msk_region(config), config.get(ARGUMENT))


def lacks_java_class(config: Mapping[str, str]) -> bool:
    """Return whether no class is known that would give signed tokens to a Java client."""
    return is_signed(config) and not config.get(HANDLER) and not msk_region(config)


def java_of_signed(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings by which a Java client gets signed tokens of its own.

    :param config: librdkafka settings for which ``is_signed`` holds.
    :raises InvalidInput: no class is named, and the brokers are not Amazon's. Or the options name another login
        module than Kafka's for OAUTHBEARER. Some modules run code from an address in their options
        (CVE-2023-25194), and a person who may edit connections must not be able to run code.
    """
    if lacks_java_class(config):
        raise InvalidInput(
            f"Kafka connection, {HANDLER}",
            found=f"nothing, and {CALLBACK} {config[CALLBACK]!r}, which Java can't call",
            expected="the Java class that gives the same tokens to `verify`, which reads by Spark's Kafka source",
            remedy=f"Name it in a connection of the role verify (`kafka_conn_ids`), its options in {JAAS}. Put "
            "its jar beside those of Spark's Kafka connector.",
        )
    jaas = config.get(JAAS) or f"{_LOGIN_MODULE} required;"
    if not _JAAS.fullmatch(jaas):
        raise InvalidInput(
            f"Kafka connection, {JAAS}",
            found="something else",
            expected=f'`{_LOGIN_MODULE} required;`, with options as `name="value"` before the semicolon',
            remedy=f"Write it so. {HANDLER} names the class that gives the tokens.",
        )
    return {HANDLER: config.get(HANDLER) or MSK_HANDLER, JAAS: jaas}


@dataclass
class SignedTokens:
    """A function's tokens, each used for most of its life.

    :param name: the name of the function, for messages.
    :param sign: the function.
    :param argument: the argument of the function: ``sasl.oauthbearer.config``, which may hold a secret.
    """

    name: str
    sign: Callable[[str | None], Any] = field(repr=False)
    argument: str | None = field(repr=False)
    _token: Token = field(default=("", 0.0, "", {}), repr=False)
    _signed_at: float = field(default=0.0, repr=False)

    def __call__(self, _: str | None) -> Token:
        """Return a token that is valid for a while, as librdkafka asks for it.

        :raises InvalidInput: the function does not return a token.
        :raises ClusterOutage: the function fails, and no earlier token is still valid.
        """
        with _lock:
            now, until = time.time(), self._token[1]
            if now < self._signed_at + USED_FOR * (until - self._signed_at):
                return self._token
            try:
                self._token, self._signed_at = self._sign(), now
            except ClusterOutage:
                if now >= until:
                    raise
                # librdkafka asks again before the token ends. If it heard of this failure, it would report wrong
                # credentials.
                _log.warning("%s failed; the earlier token is valid for another %.0f s", self.name, until - now)
            return self._token

    def token(self) -> str:
        """Return a token that is valid for a while.

        :raises InvalidInput: the function does not return a token.
        :raises ClusterOutage: the function fails, and no earlier token is still valid.
        """
        return self(self.argument)[0]

    def extensions(self) -> dict[str, str]:
        """Return the extensions by name."""
        return self._token[3]

    def __deepcopy__(self, _: object) -> SignedTokens:
        """Return this object itself, because all clients of a process share it."""
        return self

    def _sign(self) -> Token:
        what = f"Kafka connection, {self.name}"
        try:
            found = self.sign(self.argument)
        except Exception as error:
            # The text of the error may quote what was signed, so only the type of the error is told.
            raise ClusterOutage(
                what,
                found=type(error).__name__,
                expected="a signed token",
                remedy="Check the credentials that it signs with, on the machine that says this.",
            ) from None
        try:
            return _token_of(*found)
        except (TypeError, ValueError):
            shape = f"a {type(found).__name__}"
            raise InvalidInput(what, found=shape, expected=_EXPECTED, remedy="Correct the function.") from None


def _token_of(token: str, until: float, principal: str = "", extensions: Mapping[str, str] | None = None) -> Token:
    until = float(until)
    # Amazon's signer returns ms, and the example in its README passes them on as they are.
    seconds = until / 1000 if until >= MILLISECONDS_FROM else until
    return str(token), seconds, str(principal), dict(extensions or {})


@lru_cache
def _tokens(name: str, region: str, argument: str | None) -> SignedTokens:
    if not name:
        return SignedTokens(f"{SIGNER} for {region}", _msk_signer(region), argument)
    # Such a module often reads a secret when it is imported, and the text of its error may quote that.
    function = named(f"Kafka connection, {CALLBACK}", name, _EXPECTED, may_quote=False)
    if not callable(function):
        raise InvalidInput(
            f"Kafka connection, {CALLBACK} {name!r}",
            found=f"a {type(function).__name__}",
            expected=_EXPECTED,
            remedy="Name a function.",
        )
    return SignedTokens(f"{CALLBACK} {name!r}", function, argument)


def _msk_signer(region: str) -> Callable[[str | None], Any]:
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise InvalidInput(
            "Kafka connection, OAUTHBEARER to Amazon MSK",
            found=f"no Python package {SIGNER}, no {CALLBACK} and no {METHOD} 'oidc'",
            expected="the signer of IAM tokens, a function that signs them, or a token issuer",
            remedy=f"Install {SIGNER} wherever tasks run and for Spark's drivers and executors.",
        ) from None
    return lambda _: MSKAuthTokenProvider.generate_auth_token(region)
