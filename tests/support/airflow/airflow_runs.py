"""How the runs of a real Airflow ended, and the logs of the tasks that failed."""

from __future__ import annotations

from testbed.airflow_client import AirflowClient

LAST_CHARACTERS = 3_000


def assert_success(client: AirflowClient, dag_id: str, run_id: str, timeout: float) -> None:
    """Wait until a run ends, and assert its success. The message of a failure has the logs of the failed tasks.

    :param timeout: seconds
    """
    state = client.wait_for_run(dag_id, run_id, timeout=timeout)
    assert state == "success", failures(client, dag_id, run_id)


def failures(client: AirflowClient, dag_id: str, run_id: str) -> str:
    """Return the end of the last log of every failed task. Each instance of a mapped task counts as a task."""
    found = []
    for task in client.tasks(dag_id, run_id):
        if task["state"] == "failed":
            name, index = task["task_id"], task["map_index"]
            text = client.log(dag_id, run_id, name, task["try_number"], index)
            found.append(f"{name}[{index}]:\n{text[-LAST_CHARACTERS:]}")
    return "\n".join(found)
