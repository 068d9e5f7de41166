"""Sensors that wait in the triggerer and use no worker slot."""
