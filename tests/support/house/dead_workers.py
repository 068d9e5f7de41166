"""A worker that dies within a test: the test is run once more, as a test that fails is, and counted as a rerun.

A native library that crashes takes the whole process with it, so the plugin that runs tests again does not hear of
it.
"""

from __future__ import annotations

from typing import Any

import pytest


class DeadWorkers:
    """A plugin of pytest-xdist's main process. Its scheduler by files hands out again what was not completed.

    :param times: how often a test may lose its worker without having failed.
    """

    def __init__(self, times: int) -> None:
        self._left: dict[str, int] = {}
        self._times = times

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        left = self._left.setdefault(crashitem, self._times)
        if left > 0:
            self._left[crashitem] = left - 1
            report.outcome = "rerun"
