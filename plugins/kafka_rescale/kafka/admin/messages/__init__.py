"""Messages of the Kafka protocol that kafka-python lacks, in its schema language: KIP-1071's groups."""
