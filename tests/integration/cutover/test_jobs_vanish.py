"""A job is killed, fails or hangs within the pause. The pause ends within seconds, and blue runs again."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase

from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until
from tests.support.kills import kill_session
from tests.support.live_expansion import journal_of, live_application
from tests.support.ordered import NAME, Ordered
from tests.support.ordered_in_place import OrderedInPlace
from tests.support.vanishing_jobs import HARMS, await_word, catch_up_vanishes, hide, kill, vanishes

pytestmark = pytest.mark.integration


# In `make test`, test_expansion_crash.py has a `catch_up` that hangs and gives as little word as a killed one;
# U/test_jobs_beside.py has one that says that it has failed.
@pytest.mark.slow
def test_catch_up(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        expansion.warm(expansion.begin())
        for harm in HARMS:
            if journal_of(expansion).phase is Phase.ROLLED_BACK:
                expansion.begin()
            catch_up_vanishes(stack, expansion, harm)
        stack.finish_replay()
        stack.await_equal("flights")


@pytest.mark.slow
def test_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = OrderedInPlace(tmp_path / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'plugins'}")
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run")
        try:
            with ordered.at_work():
                assert ordered.run("start", NAME) == 0
                wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
                # Not `fail`: if tasks only give signs of life, Spark starts a failed one again.
                for harm in (kill, hide):
                    expansion.follow(expansion.begin(), before="move")
                    move = expansion.submit("move")
                    await_word(expansion, "move")
                    vanishes(expansion, ordered.file, "move", move, harm)
                    assert ordered.run("status", NAME) == 0
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        finally:
            ordered.run("stop", NAME)
            for process in expansion.processes:
                kill_session(process.pid)


@pytest.mark.slow
def test_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = Ordered(tmp_path / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run")
        try:
            with ordered.live():
                for harm in HARMS:
                    plan = expansion.begin()
                    if harm is HARMS[0]:
                        expansion.warm(plan)
                    expansion.prove_copies()
                    catch_up = expansion.submit("catch_up")
                    await_word(expansion, "catch_up")
                    bridge = expansion.submit("bridge")
                    await_word(expansion, "bridge")
                    vanishes(expansion, ordered.file, "bridge", bridge, harm)
                    assert ordered.run("status", NAME) == 0
                    kill_session(catch_up.pid)
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        finally:
            for process in expansion.processes:
                kill_session(process.pid)
