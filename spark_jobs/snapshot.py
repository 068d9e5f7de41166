"""Write the state of an application's stores as of the end of a day, by ``spark-submit``.

The connection comes from the environment, what to write from ``--request``; the exit codes are explained in
``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.snapshots.job import snapshot

if __name__ == "__main__":
    end(run("snapshot", snapshot, "request"))
