"""The one file that Airflow's plugin loader executes; ``.airflowignore`` keeps it out of the package beside it."""

from __future__ import annotations

from importlib.metadata import entry_points

# An installed wheel registers the same plugin by its entry point. Airflow reports a second one as an import error.
if not entry_points(group="airflow.plugins", name="kafka_rescale"):
    from kafka_rescale.airflow.plugin import KafkaRescalePlugin  # noqa: F401
