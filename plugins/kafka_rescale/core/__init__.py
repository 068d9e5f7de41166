"""The thinking: pure functions on frozen dataclasses. No Airflow, Spark or Kafka import, no clock, no network."""
