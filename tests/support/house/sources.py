"""Python files as trees, each parsed once by all tests that look at the source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed_file(file: Path) -> ast.Module:
    """Return the tree of a file. All tests share it, so no test may change it."""
    return ast.parse(file.read_text())
