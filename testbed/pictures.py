"""Pictures of a real run for people: the DAG's graph as Airflow draws it, if Debian's Chromium is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PAGE_MS = 20_000
"""Virtual time that the page gets before the picture is taken, because JavaScript draws the UI."""


def screenshot(url: str, file: Path, *, width: int = 2200, height: int = 1400) -> bool:
    """Save a picture of a page, and return whether that was possible.

    :param width: width of the window in pixels.
    :param height: height of the window in pixels.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        return False
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={file.parent / 'chromium'}", f"--window-size={width},{height}"]
    command += [f"--virtual-time-budget={PAGE_MS}", f"--screenshot={file}", url]
    subprocess.run(command, capture_output=True, timeout=180, check=False)
    shutil.rmtree(file.parent / "chromium", ignore_errors=True)
    return file.exists()
