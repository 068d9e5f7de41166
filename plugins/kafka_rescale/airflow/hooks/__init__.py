"""The connection type that Airflow knows, as the connection that every other part uses."""
