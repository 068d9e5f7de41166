"""An Airflow DAG ``expand_chain_<name>`` for each chain that application files name."""

from __future__ import annotations

from kafka_rescale.airflow.dags.chain import chain_dags

globals().update(chain_dags())
