"""An Airflow DAG ``accept_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.maintenance import accept_dag

globals().update(build_dags(accept_dag, "accept"))
