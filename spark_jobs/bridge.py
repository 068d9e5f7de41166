"""Carry the records of a repartitioned input on to its successor, by ``spark-submit``.

The connection comes from the environment, the plan from the journal; the exit codes are explained in
``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.copy.bridge import bridge
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("bridge", bridge, "silent_seconds"))
