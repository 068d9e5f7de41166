"""Warm up the new processors of a pipeline, by ``spark-submit``.

The connection comes from the environment. ``--request`` and the control topic say what to warm up.
``kafka_rescale/spark/jobs/exit_codes.py`` explains the exit codes.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.warm_up_processors import warm_up_processors

if __name__ == "__main__":
    end(run("warm_up_processors", warm_up_processors, "request"))
