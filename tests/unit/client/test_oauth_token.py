"""Tokens for client credentials, from an issuer over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import jwt
import pytest
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.oauth_token import ClientCredentials

from tests.support.token_issuer import TokenIssuer, token_issuer

SECRET = "s3cret: 100% +/&"


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with token_issuer({"us": SECRET}) as running:
        yield running


def test_a_token_is_fetched_once_and_used_again(issuer: TokenIssuer) -> None:
    credentials = ClientCredentials.of(issuer.settings("us"))
    before = len(issuer.asked)
    token = credentials.token()
    assert jwt.decode(token, options={"verify_signature": False})["sub"] == "us"
    assert credentials.token() == token
    assert issuer.asked[before:] == [{"grant_type": "client_credentials", "scope": "kafka"}]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"client.secret": "wrong-s3cret"}, "HTTPError 401"),
        ({"token.endpoint.url": "http://127.0.0.1:1/token"}, "URLError"),
    ],
)
def test_no_token_is_an_outage_that_shows_no_secret(
    issuer: TokenIssuer, change: dict[str, str], found: str
) -> None:
    changed = {f"sasl.oauthbearer.{name}": value for name, value in change.items()}
    credentials = ClientCredentials.of({**issuer.settings("us"), **changed})
    with pytest.raises(ClusterOutage, match=found) as raised:
        credentials.token()
    assert "s3cret" not in str(raised.value)
    assert "s3cret" not in repr(credentials)
