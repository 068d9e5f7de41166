"""Copy the changelogs of one stage up to their present ends, by ``spark-submit``.

The connection comes from the environment, the plan from the journal; the exit codes are explained in
``kafka_rescale/spark/exit_codes.py``.
"""

from kafka_rescale.spark.job_run import end, run
from kafka_rescale.spark.restore import restore

if __name__ == "__main__":
    end(run("restore", restore, "stage", "snapshots"))
