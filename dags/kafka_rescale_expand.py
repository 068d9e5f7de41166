"""An Airflow DAG ``expand_<application>`` per application file."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags, expansion_dag

globals().update(build_dags(expansion_dag, "expand"))
