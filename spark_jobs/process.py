"""Run a stream thread's tasks of one level of a pipeline, by ``spark-submit``.

The connection comes from the environment, what to run from ``--request`` and from the assignment in the control
topic; the exit codes are explained in ``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.job import process

if __name__ == "__main__":
    end(run("process", process, "request"))
