"""An Airflow DAG ``pace_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.maintenance import pace_dag

globals().update(build_dags(pace_dag, "pace"))
