"""An Airflow DAG ``rollback_<application>`` per application file."""

from __future__ import annotations

from kafka_rescale.airflow.dag_factory import build_dags
from kafka_rescale.airflow.maintenance_dags import roll_back_dag

globals().update(build_dags(roll_back_dag, "rollback"))
