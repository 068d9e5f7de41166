"""Warm the new processors of a pipeline up, by ``spark-submit``.

The connection comes from the environment, what to warm up from ``--request`` and from the control topic;
the exit codes are explained in ``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.warm_up_processors import warm_up_processors

if __name__ == "__main__":
    end(run("warm_up_processors", warm_up_processors, "request"))
