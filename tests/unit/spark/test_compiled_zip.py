"""Modules in a zip have their compiled files beside them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from testbed.archives.compiled_zip import compile_zips

SOURCE = "import shop.goods\nprint(shop.goods.__file__)"


def made(directory: Path) -> Path:
    path = directory / "shop.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("shop/__init__.py", "")
        archive.writestr("shop/goods.py", "PRICE = 1")
        archive.writestr("shop/goods.txt", "apples")
    return path


def test_python_imports_the_compiled_forms(tmp_path: Path) -> None:
    path = made(tmp_path)
    compile_zips(tmp_path)
    names = zipfile.ZipFile(path).namelist()
    assert {"shop/goods.py", "shop/goods.pyc", "shop/goods.txt"} <= set(names)
    code = [sys.executable, "-c", SOURCE]
    found = subprocess.run(code, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"{path}/shop/goods.pyc"


def test_a_zip_is_compiled_once(tmp_path: Path) -> None:
    path = made(tmp_path)
    compile_zips(tmp_path)
    first = path.stat()
    compile_zips(tmp_path)
    assert path.stat().st_mtime_ns == first.st_mtime_ns
    assert list(tmp_path.iterdir()) == [path]
