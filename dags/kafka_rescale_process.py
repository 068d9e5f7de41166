"""An Airflow DAG ``process_<application>`` per application file of runtime ``spark``."""

from __future__ import annotations

from kafka_rescale.airflow.dag_factory import build_dags
from kafka_rescale.airflow.process_dag import process_dag

globals().update(build_dags(process_dag, "process", runtime="spark"))
