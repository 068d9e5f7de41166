"""Write the state of an application's stores as of the end of a day, by ``spark-submit``.

The connection comes from the environment, what to write from ``--request``; the exit codes are explained in
``kafka_rescale/spark/exit_codes.py``.
"""

from kafka_rescale.spark.job_run import end, run
from kafka_rescale.spark.snapshot import snapshot

if __name__ == "__main__":
    end(run("snapshot", snapshot, "request"))
