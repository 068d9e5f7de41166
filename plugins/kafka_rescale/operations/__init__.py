"""The steps of the DAG's tasks and of the shell, one module each: plain functions over adapters and the core."""
