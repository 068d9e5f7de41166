"""Carry the records of a repartitioned input over to its successor, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.bridge import bridge
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("bridge", bridge, "silent_seconds"))
