"""Run a stream thread's tasks of one level of a pipeline, by ``spark-submit``.

The connection comes from the environment. ``--request`` and the assignment in the control topic say what to run.
``kafka_rescale/spark/jobs/exit_codes.py`` explains the exit codes.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.job import process

if __name__ == "__main__":
    end(run("process", process, "request"))
