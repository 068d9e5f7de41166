"""The package as a zip for ``spark-submit --py-files``."""

from __future__ import annotations

import os
import zipfile
from io import BytesIO
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
NAME = "kafka_rescale.zip"
KINDS = ("*.py", "*.json")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build(directory: Path) -> Path:
    """Write the zip into a directory and return its path.

    The same sources make the same bytes, and an existing file is not touched: a running job must not see its zip
    change.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path, content = directory / NAME, _content()
    if not path.exists() or path.read_bytes() != content:
        draft = directory / f".{NAME}.{os.getpid()}"
        draft.write_bytes(content)
        draft.replace(path)
    return path


def _content() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for kind in KINDS for file in PACKAGE.rglob(kind)):
            entry = zipfile.ZipInfo(file.relative_to(PACKAGE.parent).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()
