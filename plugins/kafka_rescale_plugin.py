"""The one file that Airflow's plugin loader executes; ``.airflowignore`` keeps it out of the package beside it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KafkaRescalePlugin(AirflowPlugin):
    """Makes the package known to Airflow; operators, sensors and triggers are plain imports."""

    name = "kafka_rescale"
