"""An Airflow DAG ``process_<application>`` for each application file of runtime ``spark``."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.process import process_dag

globals().update(build_dags(process_dag, "process", runtime="spark"))
