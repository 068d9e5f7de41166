"""Records of the control topic as other versions have written them."""

from __future__ import annotations

import json

from tests.support.house.names import recorded

VERSIONS = sorted(file.stem for file in recorded("upgrade").glob("*.json"))


def records_of(version: str, application: str) -> dict[str, bytes]:
    """Return the values by the part of their keys after the application's name."""
    records: dict[str, str] = json.loads(recorded(f"upgrade/{version}.json").read_text())
    prefix = f"{application}/"
    return {key.removeprefix(prefix): v.encode() for key, v in records.items() if key.startswith(prefix)}
