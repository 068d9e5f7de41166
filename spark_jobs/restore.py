"""Copy the changelogs of one stage up to their present ends, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("restore", restore, "stage", "snapshots"))
