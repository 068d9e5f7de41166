"""An Airflow DAG ``keep_warm_<application>`` for each application file of runtime ``spark`` that has `clients`."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.keep_warm import keep_warm_dag

globals().update(build_dags(keep_warm_dag, "keep_warm", runtime="spark"))
