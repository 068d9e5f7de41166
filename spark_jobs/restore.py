"""Copy the changelogs of one stage up to their present ends, by ``spark-submit``.

The connection comes from the environment, the plan from the journal; the exit codes are explained in
``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("restore", restore, "stage", "snapshots"))
