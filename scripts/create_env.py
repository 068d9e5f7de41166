"""Writes .env from .env.example: every empty value becomes a new secret, of a kind that its name tells.

Needs nothing but Python, so that docker compose works on a machine without the rest. Never replaces an existing
.env: the database was created with its password, and connections are encrypted with its Fernet key.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def new_secret(name: str) -> str:
    """A Fernet key if the name says so; otherwise hexadecimal digits, which need no escapes in a database URL."""
    if name.endswith("FERNET_KEY"):
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_hex(12 if name.endswith("PASSWORD") else 32)


def filled_in(line: str) -> str:
    """``line`` of .env.example with a secret after its ``=`` if nothing is there."""
    name, equals, value = line.partition("=")
    is_open = bool(equals) and not value and not name.startswith("#")
    return f"{name}={new_secret(name)}" if is_open else line


def main() -> int:
    """Write the file so that only its owner can read it. Return 1 if there is a file already."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    try:
        file = os.open(ROOT / ".env", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print("There is an .env already, and the data in the volumes depends on it: left alone.", file=sys.stderr)
        return 1
    with os.fdopen(file, "w") as output:
        output.writelines(f"{filled_in(line)}\n" for line in lines)
    print("Wrote .env. The password of Airflow's user admin is the value of AIRFLOW_ADMIN_PASSWORD in it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
