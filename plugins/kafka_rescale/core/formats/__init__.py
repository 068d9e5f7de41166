"""The meaning of the bytes on Kafka."""
