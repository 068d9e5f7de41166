"""Stateful pipelines in the words of the Kafka Streams DSL, and what one task of them does with its records."""
