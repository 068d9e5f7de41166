"""An Airflow DAG ``bridge_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.bridge import bridge_dag
from kafka_rescale.airflow.dags.factory import build_dags

globals().update(build_dags(bridge_dag, "bridge"))
