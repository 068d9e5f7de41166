"""Small application files for tests that need no real application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CHAIN: dict[str, Any] = {
    "application_id": "orders-app",
    "partitions": 4,
    "inputs": [{"topic": "orders", "policy": "unkeyed"}],
    "outputs": [{"topic": "totals"}],
    "subtopologies": [
        {"sources": ["orders"], "sinks": ["by-customer-repartition"]},
        {
            "sources": ["by-customer-repartition"],
            "stores": ["per-customer"],
            "sinks": ["by-region-repartition"],
        },
        {"sources": ["by-region-repartition"], "stores": ["per-region"], "sinks": ["totals"]},
    ],
    "stores": [
        {"name": "per-customer", "type": "timestamped-key-value"},
        {"name": "per-region", "type": "timestamped-key-value"},
    ],
    "lifecycle": {"type": "shell", **{c: f"true {c} {{application_id}}" for c in ("start", "stop", "status")}},
}
"""Three sub-topologies in a row: 0 feeds 1, which feeds 2."""


def write_application(directory: Path, **changes: Any) -> Path:
    """Write the chain with some fields changed into a file that is named by its id, and return the file."""
    declared = {**CHAIN, **changes}
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{declared['application_id']}.yaml"
    file.write_text(yaml.safe_dump(declared, sort_keys=False))
    return file
