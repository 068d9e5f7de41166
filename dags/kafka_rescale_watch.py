"""An Airflow DAG ``watch_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.watch import watch_dag

globals().update(build_dags(watch_dag, "watch"))
