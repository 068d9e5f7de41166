"""``on_partition_expansion`` of a pipeline that a real Airflow runs. Each call leaves a line in a file."""

from __future__ import annotations

import os
from pathlib import Path

NOTES = "GROWTH_NOTES"
"""Environment variable with the file."""


def note(old: int, new: int) -> None:
    """Write a line with both counts."""
    with Path(os.environ[NOTES]).open("a") as notes:
        notes.write(f"{old} -> {new}\n")
