"""What do the bytes on Kafka mean?"""
