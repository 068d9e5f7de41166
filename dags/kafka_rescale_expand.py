"""An Airflow DAG ``expand_<application>`` for each application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.expansion import expansion_dag
from kafka_rescale.airflow.dags.factory import build_dags

globals().update(build_dags(expansion_dag, "expand"))
