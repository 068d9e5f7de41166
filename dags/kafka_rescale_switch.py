"""An Airflow DAG ``switch_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.maintenance import switch_dag

globals().update(build_dags(switch_dag, "switch"))
