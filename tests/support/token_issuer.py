"""A token issuer on this machine. It gives signed tokens for client credentials, and the key to verify them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

KEY_ID = "1"
LIFE_SECONDS = 300


@dataclass
class TokenIssuer:
    """A running issuer.

    :param clients: secret per client id. The id is also the ``sub`` of its tokens.
    :param quotes: how its refusals begin that quote the request's credentials; empty if they quote nothing.
    :param asked: the forms of all requests for tokens so far.
    :param given: all tokens so far.
    :param is_confused: whether it takes every secret for a wrong one, as if what it looks them up in were away.
        librdkafka tells this at once, and asks again after 10 s. A 503 or 429 it tells after 30 s (seen).
    """

    url: str
    clients: Mapping[str, str] = field(repr=False)
    quotes: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    given: list[str] = field(default_factory=list, repr=False)
    is_confused: bool = False

    @property
    def jwks_url(self) -> str:
        """The address of the public key."""
        return f"{self.url}/jwks"

    def settings(self, client: str) -> dict[str, str]:
        """Return a client's librdkafka settings, except those for the brokers and their certificates."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": client,
            "sasl.oauthbearer.client.secret": self.clients[client],
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": f"{self.url}/token",
        }


@contextmanager
def token_issuer(clients: Mapping[str, str], quotes: str = "") -> Iterator[TokenIssuer]:
    """An issuer that runs as long as the block."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = {**jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": KEY_ID, "use": "sig"}
    issuer = TokenIssuer("", clients, quotes)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"keys": [public]})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            issuer.asked.append({name: values[0] for name, values in form.items()})
            client = self._client()
            if client is None:
                quoted = {"error_description": quotes + self.headers["Authorization"]} if quotes else {}
                self._answer(401, {"error": "invalid_client", **quoted})
                return
            now = int(time.time())
            claims = {"sub": client, "iat": now, "exp": now + LIFE_SECONDS, "scope": "kafka"}
            token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": KEY_ID})
            issuer.given.append(token)
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": LIFE_SECONDS})

        def _client(self) -> str | None:
            basic = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            name, _, secret = (unquote_plus(part) for part in basic.partition(":"))
            return name if clients.get(name) == secret and not issuer.is_confused else None

        def _answer(self, status: int, body: Mapping[str, object]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
