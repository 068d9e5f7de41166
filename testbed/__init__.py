"""A real Kafka broker, a real Kafka Streams application and its data, on one machine, without containers."""
