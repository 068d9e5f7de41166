"""Sensors that wait outside of worker slots."""
