"""The page in Airflow's UI: read-only, behind Airflow's authentication and the permissions of each DAG."""
