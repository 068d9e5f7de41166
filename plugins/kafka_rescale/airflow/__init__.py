"""Airflow adapters: hooks, operators, sensors, triggers and the DAGs built from application files."""
