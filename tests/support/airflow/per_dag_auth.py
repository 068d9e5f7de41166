"""Airflow's simple auth manager with one addition: each user may see only the DAGs of ``MAY_SEE``."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

EVERYTHING = "*"
MAY_SEE: dict[str, frozenset[str]] = {
    "root": frozenset({EVERYTHING}),
    "ada": frozenset({EVERYTHING}),
    "bob": frozenset({"expand_orders"}),
    "eve": frozenset(),
}
ADMIN = "root"
"""This user may do everything. All other users may only look."""
NOT_THE_RUNS = "carl"
"""This user may see every DAG, but not what happens in its runs."""


class PerDagAuthManager(SimpleAuthManager):
    """Decides by the name of the user."""

    def init(self) -> None:
        """Prepare nothing, because no user signs in with a password."""

    def is_authorized_dag(
        self, *, method: str, user: SimpleAuthManagerUser, access_entity: Any = None, details: Any = None
    ) -> bool:
        """Return whether the DAG is one of the user's."""
        if user.username == NOT_THE_RUNS:
            return access_entity is None
        seen = MAY_SEE[user.username]
        looks = method == "GET" or user.username == ADMIN
        return looks and (EVERYTHING in seen or (details is not None and details.id in seen))


def token_of(username: str) -> str:
    """Return the token that Airflow would put into the cookie of this user."""
    user = SimpleAuthManagerUser(username=username, role="ADMIN" if username == ADMIN else "VIEWER")
    return PerDagAuthManager().generate_jwt(user)
