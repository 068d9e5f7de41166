"""The worker is killed while it calls ``on_partition_expansion``. The control topic knows about the call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.expansion.callback import expansion_id
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion.finish import finish

from testbed.expansion import ROOT
from tests.support.expansion import expansion_callbacks
from tests.support.situations import situation
from tests.support.small_application import write

pytestmark = pytest.mark.integration

OWNER, MODULE = "expand/run-1", "tests.support.expansion.expansion_callbacks"
PLAN = situation().plan
FINISH = (
    "import sys; from kafka_rescale.operations.expansion.finish import finish;"
    "from kafka_rescale.operations.application.load import load_application;"
    "from kafka_rescale.kafka.client.connection import KafkaConnection;"
    "finish(load_application(sys.argv[1]), KafkaConnection({'bootstrap.servers': sys.argv[2]}), owner=sys.argv[3])"
)


@dataclass
class Verified:
    """A verified expansion before its last task."""

    name: str
    directory: Path
    connection: KafkaConnection

    @property
    def control(self) -> ControlTopic:
        return ControlTopic(self.connection, self.name)

    def journal(self) -> Journal:
        """The journal in the control topic."""
        journal = self.control.read().journal
        assert journal is not None
        return journal

    def declares(self, callback: str | None) -> Path:
        """Write the application file that declares a function."""
        changes = {} if callback is None else {"on_partition_expansion": f"{MODULE}:{callback}"}
        return write(self.directory, self.name, **changes)

    def finish(self, file: Path, owner: str = OWNER) -> None:
        """Run the last task in this process."""
        finish(load_application(file), self.connection, owner=owner)

    def finish_and_die(self, file: Path, when: str) -> None:
        """Run the last task in a worker that is killed before or after the effect."""
        servers = self.connection.config["bootstrap.servers"]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}",
            expansion_callbacks.DIES: when,
        }
        command = [sys.executable, "-c", FINISH, str(file), servers, OWNER]
        worker = subprocess.run(command, env=environment, check=False, timeout=120)
        assert worker.returncode == -signal.SIGKILL


@pytest.fixture
def verified(client: Mapping[str, str], unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verified:
    """An expansion in phase ``VERIFIED``, without an effect of the function so far."""
    monkeypatch.setenv(expansion_callbacks.EFFECTS, str(tmp_path / "effects"))
    given = Verified(unique, tmp_path, KafkaConnection(dict(client)))
    lease = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=2**60)
    plan = PLAN.model_copy(update={"application": unique})
    given.control.update(lambda _: {"lease": lease, "journal": Journal(plan=plan, phase=Phase.VERIFIED)})
    return given


# In `make test`, a function that has had its effect: what the control topic knows is the same in both cases.
@pytest.mark.parametrize(
    ("when", "effects"), [pytest.param("before", [], marks=pytest.mark.slow), ("after", ["4->8"])]
)
def test_a_function_that_can_not_tell_is_not_called_again(
    when: str, effects: list[str], verified: Verified
) -> None:
    verified.finish_and_die(verified.declares("note"), when)
    assert verified.journal().phase is Phase.VERIFIED
    with pytest.raises(UnsafeState, match=r"a call of .*:note that has begun, and no record of its end"):
        verified.finish(verified.declares("note"))
    assert expansion_callbacks.effects() == effects
    verified.finish(verified.declares(None))
    assert verified.journal().phase is Phase.COMPLETE


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_function_that_knows_the_expansion_has_one_effect(when: str, verified: Verified) -> None:
    file = verified.declares("note_once")
    verified.finish_and_die(file, when)
    verified.finish(file)
    assert expansion_callbacks.effects() == [f"4->8 {expansion_id(verified.journal().plan)}"]
    assert verified.journal().phase is Phase.COMPLETE


def test_a_run_that_has_lost_the_lease_calls_nothing(verified: Verified) -> None:
    with pytest.raises(Fenced, match="owner expand/run-1"):
        verified.finish(verified.declares("note"), owner="expand/run-0")
    assert expansion_callbacks.effects() == []
