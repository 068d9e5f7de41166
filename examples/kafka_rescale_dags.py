"""All Airflow DAGs of all application files: copy this file into the DAGs folder where the wheel is installed."""

from __future__ import annotations

from kafka_rescale.airflow.all_dags import all_dags

globals().update(all_dags())
