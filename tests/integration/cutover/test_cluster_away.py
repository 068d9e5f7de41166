"""The only broker is frozen for a while within the pause. Then green is promoted, or blue runs again."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.modes import blue_green

from testbed.broker import EmbeddedBroker
from tests.support.live_expansion import live_application

pytestmark = [pytest.mark.integration, pytest.mark.slow]
AWAY_SECONDS = 40.0
"""Longer than the timeout of one request, or of one reading of the control topic."""


@pytest.mark.parametrize(
    "changes", [{}, {"max_pause_seconds": 20}], ids=["within the limit of the pause", "beyond it"]
)
def test_somebody_processes_in_the_end(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with (
        EmbeddedBroker(tmp_path / "broker", heap="512m") as broker,
        live_application(tmp_path, rate=8, cluster=broker, changes=changes) as (stack, expansion),
    ):
        expansion.warm(expansion.begin())
        expansion.prove_copies()
        expansion.submit("catch_up")
        await_copied, frozen = blue_green.await_copied, []

        def freezing(*arguments: Any) -> None:
            if not frozen:
                frozen.append(True)
                broker.freeze()
                threading.Timer(AWAY_SECONDS, broker.thaw).start()
            await_copied(*arguments)

        monkeypatch.setattr(blue_green, "await_copied", freezing)
        try:
            run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
        except RescaleError as error:
            print(f"the cutover ended with {error}")
        journal = expansion.state().journal
        assert journal is not None
        assert frozen
        print(f"phase {journal.told}; {journal.timings}")
        runs = {name: stack.run("status", name) == 0 for name in ("flights", "flights-g2")}
        told = [line for line in caplog.messages if "NOBODY PROCESSES the inputs of flights" in line]
        print(*told, sep="\n")
        assert told
        if journal.phase is Phase.ROLLED_BACK:
            assert runs == {"flights": True, "flights-g2": False}
        else:
            assert journal.phase is Phase.STARTED
            assert runs == {"flights": False, "flights-g2": True}
        stack.finish_replay()
        stack.await_equal(next(name for name, runs_now in runs.items() if runs_now))
