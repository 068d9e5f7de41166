"""Spark: how the jobs start and stop, and the DataFrame work of the proof."""
