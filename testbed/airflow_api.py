"""Requests to Airflow's REST API: tokens, errors, and answers that come late."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from testbed.airflow_settings import LOCKED_DATABASE_SECONDS

TRIES, READINGS = 50, 3
"""How often a request is sent while the database is locked, and how often a reading is sent without an answer."""
PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = LOCKED_DATABASE_SECONDS + 30
"""Long enough for a request that waits for another request's transaction to get its answer."""


class AirflowApiError(RuntimeError):
    """The API refused a request.

    :param status: HTTP status code.
    """

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(f"HTTP {status}: {text}")

    @property
    def is_of_a_locked_database(self) -> bool:
        """Whether the database was locked. Then the error may pass, and the request has changed nothing."""
        if self.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return "Database error" in str(self)
        return self.status == HTTPStatus.SERVICE_UNAVAILABLE


class AirflowApi:
    """The API of one Airflow.

    :param url: address of the API server, without a path
    :param token: token of a user; without a token, all users of this Airflow have to be admins
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON answer of one request below ``/api/v2``. A token is fetched when needed.

        A request that found the SQLite database locked has changed nothing, so it is sent again. So is a reading
        without an answer.

        :raises AirflowApiError: the answer is an error.
        """
        for asked in range(1, TRIES):
            try:
                return self._with_token(method, path, body)
            except AirflowApiError as error:
                if not error.is_of_a_locked_database:
                    raise
            except TimeoutError:
                if method != "GET" or asked == READINGS:
                    raise
            time.sleep(PAUSE_SECONDS)
        return self._with_token(method, path, body)

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON answer of one request below the address itself, with the token if there is one."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AirflowApiError(error.code, error.read().decode(errors="replace")[:2000]) from error

    def _with_token(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        if self._token is None:
            self._token = self.send("GET", "/auth/token")["access_token"]
        try:
            return self.send(method, f"/api/v2{path}", body)
        except AirflowApiError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                self._token = None
            raise
