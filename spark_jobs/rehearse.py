"""Check whether every record could be moved in place, and change nothing, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.rehearse import rehearse
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("rehearse", rehearse))
