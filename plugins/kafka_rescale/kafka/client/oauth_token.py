"""OAUTHBEARER by OIDC client credentials (KIP-768): the settings of a connection, and a token for kafka-python.

librdkafka and Java fetch their tokens themselves; kafka-python leaves that to its user.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.error import URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

from kafka_rescale.core.errors import ClusterOutage, InvalidInput

OAUTHBEARER = "OAUTHBEARER"
SECONDS = 10.0
USED_FOR = 0.8
"""The part of a token's life during which it is used. After that, a new token is fetched."""

_PREFIX = "sasl.oauthbearer"


@dataclass
class ClientCredentials:
    """A client of a token issuer.

    :param endpoint: URL that gives tokens.
    :param pairs: extensions for the brokers, ``name=value`` with commas between.
    :param authority: PEM file that verifies the issuer's certificate. If this is empty, the authorities of the
        machine verify the certificate.
    """

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    pairs: str = ""
    authority: str = ""
    _token: str = field(default="", repr=False)
    _until: float = 0.0

    @classmethod
    def of(cls, config: Mapping[str, str]) -> ClientCredentials:
        """Return the credentials in librdkafka settings.

        :raises InvalidInput: the method is not ``oidc``, or a setting is missing.
        """
        method = config.get(f"{_PREFIX}.method", "default")
        if method.lower() != "oidc":
            raise InvalidInput(
                f"Kafka connection, {_PREFIX}.method",
                found=repr(method),
                expected="'oidc', client credentials of a token issuer",
                remedy="Set it, with the issuer's endpoint and the client, or name a function that signs tokens "
                "as oauth_cb.",
            )
        needed = {name: f"{_PREFIX}.{name}" for name in ("token.endpoint.url", "client.id", "client.secret")}
        for key in needed.values():
            if not config.get(key):
                raise InvalidInput(
                    f"Kafka connection, {key}",
                    found="nothing",
                    expected="what the token issuer has given out",
                    remedy=f"Set {', '.join(needed.values())}.",
                )
        return cls(
            endpoint=config[needed["token.endpoint.url"]],
            client_id=config[needed["client.id"]],
            client_secret=config[needed["client.secret"]],
            scope=config.get(f"{_PREFIX}.scope", ""),
            pairs=config.get(f"{_PREFIX}.extensions", ""),
            authority=config.get("https.ca.location", ""),
        )

    def token(self) -> str:
        """Return a token that is valid for a while.

        :raises ClusterOutage: the issuer gives no token.
        """
        if time.monotonic() >= self._until:
            answer = self._fetch()
            self._token = str(answer["access_token"])
            self._until = time.monotonic() + USED_FOR * float(answer.get("expires_in", 0))
        return self._token

    def extensions(self) -> dict[str, str]:
        """Return the extensions by name."""
        named = (pair.partition("=") for pair in self.pairs.split(",") if pair.strip())
        return {name.strip(): value.strip() for name, _, value in named}

    def _fetch(self) -> dict[str, str]:
        # RFC 6749, 2.3.1: id and secret are form-encoded before they are put together.
        client = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}".encode()
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        headers = {"Authorization": f"Basic {base64.b64encode(client).decode()}", "Accept": "application/json"}
        request = Request(self.endpoint, urlencode(form).encode(), headers, method="POST")
        context = ssl.create_default_context(cafile=self.authority or None)
        try:
            with urlopen(request, timeout=SECONDS, context=context) as answer:
                found = json.load(answer)
            if not isinstance(found, dict) or "access_token" not in found:
                raise ValueError("no access_token")
        except (URLError, OSError, ValueError) as error:
            # An issuer may quote the request, so only the class and the code of the error are told.
            raise ClusterOutage(
                f"token of {self.client_id!r} from {self.endpoint}",
                found=f"{type(error).__name__} {getattr(error, 'code', '')}".strip(),
                expected="a token for these client credentials",
                remedy="Check the endpoint, the client and its secret, and that the issuer is up.",
            ) from None
        return found
