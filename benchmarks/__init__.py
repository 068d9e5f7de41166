"""Measures how long the pause is, how fast the copy is, and what a full reset costs, on one machine in one run."""
