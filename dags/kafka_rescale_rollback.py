"""An Airflow DAG ``rollback_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.maintenance import roll_back_dag

globals().update(build_dags(roll_back_dag, "rollback"))
