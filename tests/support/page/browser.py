"""Chromium without a window, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the machine's Chromium, and end it.

    :raises LookupError: there is no Chromium. A test that needs it then fails instead of being skipped.
    """
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise LookupError("no Chromium on this machine: `scripts/check_machine.sh --tests` says how to install it")
    # Chromium's own sandbox works only for a user that is not root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Complaints:
    """The errors that a page has logged, and the requests that went to another server than its own."""

    def __init__(self, page: Page, server: str) -> None:
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith((server, "data:")) else self.elsewhere.append(r.url))
