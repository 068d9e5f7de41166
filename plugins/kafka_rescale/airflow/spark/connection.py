"""Check the Spark connection before anything is submitted.

If a connection is missing or can't be parsed, the provider falls back to ``--master yarn``, and says so only in
one log line at INFO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from kafka_rescale.core.errors import Complaint, InvalidInput, Outage

if TYPE_CHECKING:
    from airflow.sdk import Connection

LOCAL_EXAMPLE = '{"conn_type": "spark", "host": "local[*]"}'


def require_spark_master(conn_id: str) -> str:
    """Return the master that a Spark connection names.

    :raises Outage: There is no such connection, it can't be parsed, or Airflow can't look it up at the moment.
        Airflow says the same of all three.
    :raises InvalidInput: The connection names no master.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise Outage.of(_complaint(conn_id, str(error))) from error
    master = master_of(connection)
    if not connection.host and master != "yarn":
        raise InvalidInput.of(_complaint(conn_id, "a connection without a host"))
    return master


def master_of(connection: Connection) -> str:
    """Return the ``--master`` that the provider will pass for a connection (``SparkSubmitHook``)."""
    host, port = connection.host or "", connection.port
    plain = connection.conn_type == "spark" and host and ("://" in host or not port)
    if connection.conn_type == "yarn" or host == "yarn":
        return "yarn"
    master = host if plain else f"{connection.conn_type}://{host}"
    return f"{master}:{port}" if port else master


def deploy_mode_of(conn_id: str) -> str:
    """Return the deploy mode of the connection's extra: ``client`` or ``cluster``."""
    return BaseHook.get_connection(conn_id).extra_dejson.get("deploy-mode") or "client"


def names_resource_manager(conn_id: str) -> bool:
    """Return whether the connection has the address at which YARN's ResourceManager tells a job's status."""
    return bool(BaseHook.get_connection(conn_id).extra_dejson.get("yarn_resourcemanager_webapp_address"))


def _complaint(conn_id: str, found: str) -> Complaint:
    return Complaint(
        f"Spark connection {conn_id!r}",
        found=found,
        expected=f"a connection that names a master, for example {LOCAL_EXAMPLE}",
        remedy=f"Set AIRFLOW_CONN_{conn_id.upper()} to such JSON; the URI spark://local[*] can't be parsed.",
    )
