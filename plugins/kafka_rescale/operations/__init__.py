"""What the DAG's tasks and the shell do, one module per step: plain functions over the adapters and the core."""
