"""Clusters and their brokers, as tests need them."""
