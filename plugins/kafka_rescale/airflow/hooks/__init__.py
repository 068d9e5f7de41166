"""Turn a connection of Airflow into the Kafka connection that every other part uses."""
