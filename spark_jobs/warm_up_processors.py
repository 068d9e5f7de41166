"""Warm the new processors of a pipeline up, by ``spark-submit``.

The connection comes from the environment, what to warm up from ``--request`` and from the control topic;
the exit codes are explained in ``kafka_rescale/spark/exit_codes.py``.
"""

from kafka_rescale.spark.job_run import end, run
from kafka_rescale.spark.warm_up_processors import warm_up_processors

if __name__ == "__main__":
    end(run("warm_up_processors", warm_up_processors, "request"))
