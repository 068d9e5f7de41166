"""In a real Airflow, the worker, the Spark driver or the broker is killed once during each step of the DAG.

Slow: run by `make test-crash`. A run that fails is triggered again, as a person would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_client import FINISHED_RUN, AirflowApiError
from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.demo import Options, await_live, environment
from testbed.processes import wait_until
from tests.support.kills import killed, processes_with

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND = "expand_flights"
RUNS, RUN_SECONDS = 12, 1500
JOBS = Counter({"restore": 2, "warm_up": 2, "catch_up": 1, "prove": 1, "verify": 1})
"""Tasks with a Spark driver, of two stages and of the whole expansion."""
OTHERS = Counter({"preflight": 1, "plan": 1, "expand": 2, "prewarm": 1, "cutover": 1, "callback": 1})
"""Tasks without a driver that run long enough to be killed at work. A gate that is open at once does not."""
Kill = Callable[[str, dict[str, object]], bool]


def kill_worker(task_id: str, task: dict[str, object]) -> bool:
    """Kill the process in which Airflow runs a task."""
    return killed(processes_with("airflow worker", str(task["id"])))


def kill_driver(task_id: str, task: dict[str, object]) -> bool:
    """Kill the Python driver of a Spark job. Other tasks have no driver."""
    job = task_id.rpartition(".")[2]
    # Find it by its run, because another Airflow on this machine may expand an application of the same name.
    return killed(processes_with(f"spark_jobs/{job}.py", str(task["dag_run_id"])))


@pytest.mark.parametrize("victim", ["worker", "driver", "broker"])
def test_crash_during_each_step_ends_verified(victim: str, tmp_path: Path) -> None:
    options = Options(
        directory=tmp_path,
        guarantee="exactly_once_v2",
        target=8,
        preload=6_000,
        rate=3,
        limit=14_000,
    )
    with environment(options) as (stack, airflow):
        await_live(stack, options)
        kills = {"worker": kill_worker, "driver": kill_driver, "broker": broker_kill(tmp_path)}
        dead = drive(airflow, kills[victim])
        counts = Counter(task_id.rpartition(".")[2] for task_id in dead)
        missed = (JOBS if victim == "driver" else JOBS | OTHERS) - counts
        assert not missed, f"not killed during {missed}"
        print(f"{victim} killed during {sorted(dead)}")
        state = ControlTopic(KafkaConnection(stack.client), "flights").read()
        assert state.journal is not None
        assert state.journal.phase == "complete"
        assert state.report["passed"]
        stack.finish_replay()
        # A killed broker may have lost input. Compare with the results of the input that it still has.
        stack.await_equal("flights-g2", logged=victim == "broker")


def broker_kill(directory: Path) -> Kill:
    """Return a function that kills the broker and starts it again at once."""

    def kill(task_id: str, task: dict[str, object]) -> bool:
        broker = EmbeddedBroker(directory / "broker", detached=True)
        broker.kill()
        broker.start()
        return True

    return kill


def drive(airflow: AirflowStandalone, kill: Kill) -> set[str]:
    """Trigger runs until one succeeds, kill once during each task, and return the tasks with a kill."""
    dead: set[str] = set()
    for _ in range(RUNS):
        run_id = airflow.client.trigger(EXPAND, {"dry_run": False, "approve_cutover": False})

        def step(run_id: str = run_id) -> bool:
            with suppress(AirflowApiError):
                for task_id, state in airflow.client.task_states(EXPAND, run_id).items():
                    fresh = state == "running" and task_id not in dead
                    if fresh and kill(task_id, airflow.client.task(EXPAND, run_id, task_id)):
                        dead.add(task_id)
                return airflow.client.run_state(EXPAND, run_id) in FINISHED_RUN
            return False

        wait_until(step, timeout=RUN_SECONDS, what=f"the end of {run_id}")
        if airflow.client.run_state(EXPAND, run_id) == "success":
            return dead
    pytest.fail(f"no run succeeded; killed during {sorted(dead)}")
