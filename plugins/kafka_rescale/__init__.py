"""Kafka Rescale: re-partition the state of a live, stateful Kafka application."""

__version__ = "0.1.0"
