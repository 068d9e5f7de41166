"""The commands of ``docs/rest.md``, taken from its text and run by Bash with the names of a test's own Airflow."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from testbed.airflow_client import AirflowClient
from testbed.processes import wait_until

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rest.md"
LOCKED = re.compile(r"curl: .* returned error: 50[03]")


def rest_commands() -> dict[str, str]:
    """Return the commands by the heading under which they stand."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    titled = {title: text for title, _, text in (section.partition("\n") for section in sections)}
    return {title: "".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)) for title, text in titled.items()}


def run_as_on_the_page(heading: str, airflow: str, dag_id: str, run_id: str = "") -> str:
    """Log in as the page says, run the commands under a heading, and return what they print.

    A command that finds the SQLite database locked changes nothing. Then all of them are run again: only the last
    one changes anything.

    :param airflow: address of the API server
    :param dag_id: takes the place of the DAG in the commands
    :param run_id: the run that was triggered before; empty if there is none
    """
    commands = rest_commands()
    script = f"RUN={run_id}\n{commands['Log in']}{commands[heading]}".replace("http://localhost:8080", airflow)
    script = re.sub(r"\b\w+_order-totals\b", dag_id, script)
    found: list[subprocess.CompletedProcess[str]] = []

    def is_answered() -> bool:
        bash = ["bash", "-euo", "pipefail", "-c", script]
        found.append(subprocess.run(bash, capture_output=True, text=True, timeout=120, check=False))
        return not LOCKED.search(found[-1].stderr)

    wait_until(is_answered, timeout=120, what="Airflow's database not to be locked", poll_seconds=0.5)
    assert found[-1].returncode == 0, f"{found[-1].stdout}{found[-1].stderr}"
    return found[-1].stdout


def trigger_as_on_the_page(heading: str, client: AirflowClient, dag_id: str) -> str:
    """Unpause a DAG, start a run by the commands under a heading, and return the run's id."""
    client.await_dag(dag_id)
    assert '"is_paused":false' in run_as_on_the_page("Unpause", client.url, dag_id)
    return run_as_on_the_page(heading, client.url, dag_id).strip()


def approve_as_on_the_page(client: AirflowClient, dag_id: str, run_id: str, timeout: float) -> str:
    """Watch a run that asks for its cutover, approve it, and return what the commands print.

    :param timeout: how long to wait until the question takes an answer, in seconds
    """
    task = "approve_cutover"
    watched = run_as_on_the_page("Watch", client.url, dag_id, run_id).splitlines()
    assert (watched[0], watched[-1]) == ("running", task)
    assert f"{task} awaiting_input" in watched
    client.wait(lambda: client.is_answerable(dag_id, run_id, task), f"{task} to take an answer", timeout)
    return run_as_on_the_page("Approve", client.url, dag_id, run_id)
