"""What the runs of a real Airflow have come to, and what the tasks that failed have said."""

from __future__ import annotations

import json
from urllib.parse import quote

from kafka_rescale.embedded.airflow_client import AirflowClient

LAST_CHARACTERS = 3_000


def assert_success(client: AirflowClient, dag_id: str, run_id: str, timeout: float) -> None:
    """Wait for the end of a run; the logs of failed tasks are the message.

    :param timeout: seconds
    """
    state = client.wait_for_run(dag_id, run_id, timeout=timeout)
    assert state == "success", failures(client, dag_id, run_id)


def failures(client: AirflowClient, dag_id: str, run_id: str) -> str:
    """Return the end of the last log of every task that failed, each of a mapped task's among them."""
    path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}/taskInstances"
    failed = [t for t in client.request("GET", f"{path}?limit=500")["task_instances"] if t["state"] == "failed"]
    found = []
    for task in failed:
        name, number = task["task_id"], task["try_number"]
        query = f"full_content=true&map_index={task['map_index']}"
        entries = client.request("GET", f"{path}/{name}/logs/{number}?{query}")["content"]
        text = "\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries)
        found.append(f"{name}[{task['map_index']}]:\n{text[-LAST_CHARACTERS:]}")
    return "\n".join(found)
