"""An Airflow DAG ``snapshot_<application>`` for each application file with a `snapshots:` section."""

from __future__ import annotations

from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.snapshot import snapshot_dag

globals().update(build_dags(snapshot_dag, "snapshot"))
