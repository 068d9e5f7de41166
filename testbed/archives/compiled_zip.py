"""Zips of Python modules with their compiled forms beside them.

When Python imports from a zip, it does not keep what it compiles. PySpark is in a zip. So each driver and each
worker of a Spark job would compile the modules of PySpark that it imports, which takes 0.6 s of a core.
"""

from __future__ import annotations

import os
import struct
import sys
import zipfile
from importlib.util import MAGIC_NUMBER, source_hash
from marshal import dumps
from pathlib import Path

UNCHECKED = 1
"""Flag of PEP 552: the compiled module is valid without a check of its source."""


def compile_zips(directory: Path) -> None:
    """Add the compiled forms of all modules to the zips in a directory, unless they are there.

    A Python of another version compiles the modules itself, as before.
    """
    for path in sorted(directory.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith(".pyc") for name in names):
                continue
            files = {name: archive.read(name) for name in names if not name.endswith("/")}
        draft = path.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
                if name.endswith(".py"):
                    archive.writestr(f"{name}c", _compiled(name, content))
        draft.replace(path)


def _compiled(name: str, source: bytes) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    return MAGIC_NUMBER + struct.pack("<L", UNCHECKED) + source_hash(source) + dumps(code)


if __name__ == "__main__":  # `python -m testbed.archives.compiled_zip DIRECTORY` prepares an environment
    compile_zips(Path(sys.argv[1]))
