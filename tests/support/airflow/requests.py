"""Plain HTTP requests, for tests of which user gets which answer."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Status, headers and text of an answer. An error is an answer too."""

    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        """Return the text's JSON."""
        return json.loads(self.text)


def get(url: str, *, cookie: str = "", accept: str = "application/json") -> Answer:
    """Send a GET request."""
    return send("GET", url, cookie, accept)


def send(method: str, url: str, cookie: str = "", accept: str = "application/json") -> Answer:
    """Send a request without a body, and follow redirects."""
    headers = {"Accept": accept, **({"Cookie": cookie} if cookie else {})}
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return Answer(response.status, dict(response.headers), response.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(error.code, dict(error.headers), error.read().decode())
