"""Setup keeps the environment of a checkout as long as it belongs to this checkout."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = sorted(ROOT.glob("requirements*.txt"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up, but has neither packages nor sources."""
    directory = tmp_path / "checkout"
    shutil.copytree(ROOT / "scripts", directory / "scripts")
    for file in REQUIREMENTS:
        shutil.copy(file, directory)
    venv.create(directory / ".venv")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in REQUIREMENTS)).hexdigest()
    (directory / ".venv" / ".installed-from").write_text(digest + "\n")
    (directory / "jvm" / "target" / "classes").mkdir(parents=True)
    (directory / "jvm" / "target" / "classes" / ".built-from").touch()
    return directory


def said_by_setup(checkout: Path) -> str:
    """Return what setup says before it fails at the JVM parts, whose sources are missing."""
    command = ["bash", str(checkout / "scripts" / "setup.sh")]
    offline = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
    assert "testbed" in run.stderr
    return run.stderr


def test_a_checkout_behind_a_link_keeps_its_environment(checkout: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(checkout)
    assert "making .venv" not in said_by_setup(link)
    assert "making .venv" not in said_by_setup(checkout)
