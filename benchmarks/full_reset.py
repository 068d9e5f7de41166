"""The usual way to another partition count: stop, reset, grow, reprocess everything. All of it is an outage."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_rescale.core.control.journal import PartitionOffsets

from benchmarks.live_application import LiveApplication, live_application
from benchmarks.sizes import AFTER, Sizes
from testbed.jars import java_command
from testbed.outputs import compare_with_expected
from testbed.processes import wait_until
from testbed.replay import Replay
from testbed.topics import FLIGHTS, PLANES, create_inputs

RESET_SECONDS = 120


def measure_full_reset(directory: Path, sizes: Sizes, copies: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure the outage until the output is where it was before, and check that the final state is right.

    :returns: ``parts`` of the outage in seconds. ``stale_outputs``: results that stay in the output topics though
        they are no longer right. For example, a session was written before the reset and grows afterwards. It is
        never deleted there, if the cache of the new incarnation has not let it through in between.
    """
    with live_application(directory, sizes, copies, tell) as live:
        reset = FullReset(live)
        reset.run()
        tell(f"reset {copies}×: outage of {reset.parts['total']:.1f} s")
        sent, client = live.finished("flights"), live.stack.client
        state = compare_with_expected(client, sent, application_id="flights", output_prefix=None)
        outputs = compare_with_expected(client, sent)
        return {
            "copies": copies,
            "flights": live.preloaded,
            "parts": reset.parts,
            "stale_outputs": sum(outputs.counts.values()) - sum(state.counts.values()),
            "equal": state.equal,
            "differences": state.differences,
        }


class FullReset:
    """The parts of the outage, in seconds."""

    def __init__(self, live: LiveApplication) -> None:
        self._live = live
        self.parts: dict[str, float] = {}

    def run(self) -> None:
        """Stop, reset, grow, restart, and wait until everything that had been processed is processed again."""
        live, began = self._live, time.monotonic()
        with self._timed("stop"):
            live.stack.run("stop")
        processed = live.admin.committed("flights")[FLIGHTS]
        with self._timed("grow"):
            self._grow()
        with self._timed("reset"):
            self._reset()
        with self._timed("reprocess"):
            assert live.stack.run("start") == 0
            live.await_processed("flights", self._where_it_was(processed))
        self.parts["total"] = round(time.monotonic() - began, 3)

    def _grow(self) -> None:
        """Grow the unkeyed input, and fill the keyed one anew, as its keys would be in the wrong partitions."""
        admin = self._live.admin
        admin.grow_topic(FLIGHTS, AFTER)
        admin.delete_topics([PLANES])
        wait_until(lambda: PLANES not in admin.list_topics(), timeout=60, what=f"{PLANES} to be deleted")
        create_inputs(self._live.stack.client, AFTER)
        # Use a new producer, because the old one knows 4 partitions until its next refresh.
        Replay(self._live.stack.client, self._live.dataset).send_planes()

    def _reset(self) -> None:
        options = {"--bootstrap-server": self._live.stack.bootstrap_servers, "--application-id": "flights"}
        options["--input-topics"] = f"{FLIGHTS},{PLANES}"
        words = [word for pair in options.items() for word in pair]
        # Without --force, the tool refuses until the session of the stopped instance has timed out.
        command = java_command("org.apache.kafka.tools.StreamsResetter", *words, "--force")
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESET_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"the reset failed:\n{(done.stdout + done.stderr)[-3000:]}")
        shutil.rmtree(self._live.stack.directory / "state" / "flights")

    def _where_it_was(self, processed: dict[int, int]) -> PartitionOffsets:
        return {FLIGHTS: processed, PLANES: self._live.admin.end_offsets([PLANES])[PLANES]}

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.parts[part] = round(time.monotonic() - began, 3)
