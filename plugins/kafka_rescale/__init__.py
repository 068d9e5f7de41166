"""Kafka Rescale: re-partition the state of a live, stateful Kafka application."""
