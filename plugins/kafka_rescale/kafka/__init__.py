"""What is said to a Kafka cluster: connection, administration, control topic, copy loop. No Airflow, no Spark."""
