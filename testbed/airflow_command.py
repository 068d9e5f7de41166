"""Write the settings of an Airflow on one machine to a file that a shell reads. Nothing has to be edited in it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from testbed.airflow_settings import AirflowPorts, airflow_environment

REPOSITORY = Path(__file__).resolve().parents[1]
FILE_NAME = "environment"
OTHERS = {"KAFKA_RESCALE_APPLICATIONS", "PYTHONPATH", "PYTHONUNBUFFERED", "SPARK_SUBMIT_OPTS"}
"""Settings that a shell which has read the file has already. If the command is run there, it still writes them."""


def main(arguments: list[str] | None = None) -> int:
    """Write the file, and print how to go on."""
    parser = argparse.ArgumentParser(prog="python -m testbed.airflow_command", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="AIRFLOW_HOME, made if missing")
    parser.add_argument("--port", type=int, help="port of its web page; a free port if omitted")
    parser.add_argument(
        "--kafka", default="localhost:9092", help="bootstrap.servers of the connection kafka_default"
    )
    parser.add_argument("--spark", default="local[2]", help="master of the connection spark_default")
    parser.add_argument(
        "--applications",
        type=Path,
        help="directory of application files; default: KAFKA_RESCALE_APPLICATIONS, or the clone's",
    )
    options = parser.parse_args(arguments)
    home = options.directory.resolve()
    home.mkdir(parents=True, exist_ok=True)
    ports = AirflowPorts.free(options.port)
    environment = airflow_environment(
        home,
        ports,
        dags=REPOSITORY / "dags",
        plugins=REPOSITORY / "plugins",
        connections={
            "kafka_default": {"conn_type": "kafka", "extra": {"bootstrap.servers": options.kafka}},
            "spark_default": {"conn_type": "spark", "host": options.spark},
        },
    )
    if options.applications is not None:
        environment["KAFKA_RESCALE_APPLICATIONS"] = str(options.applications.resolve())
    file = home / FILE_NAME
    # The file has the keys with which tokens are signed.
    file.touch(mode=0o600)
    file.write_text(as_exports(environment))
    print(f". {file}")
    print(f"airflow standalone    # http://localhost:{ports.api}, without a password, for this machine only")
    return 0


def as_exports(environment: dict[str, str]) -> str:
    """Return the settings, and the other new variables of an environment, as lines that a shell reads."""
    return "".join(
        f"export {name}={shlex.quote(value)}\n"
        for name, value in sorted(environment.items())
        if name.startswith("AIRFLOW") or name in OTHERS or os.environ.get(name) != value
    )


if __name__ == "__main__":
    sys.exit(main())
