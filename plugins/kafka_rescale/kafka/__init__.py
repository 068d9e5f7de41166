"""Everything that talks to a Kafka cluster: connection, administration, control topic, copy loop."""
