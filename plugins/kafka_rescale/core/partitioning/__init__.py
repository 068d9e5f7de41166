"""Which partition, and which processor, does a key belong to?"""
