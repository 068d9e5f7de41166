"""Write the state that an application's stores had at the end of a day, by ``spark-submit``.

The connection comes from the environment. ``--request`` says what to write.
``kafka_rescale/spark/jobs/exit_codes.py`` explains the exit codes.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.snapshots.job import snapshot

if __name__ == "__main__":
    end(run("snapshot", snapshot, "request"))
