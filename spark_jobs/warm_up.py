"""Copy the records that have arrived since the last round, until the lag is acceptable, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.warm_up import warm_up
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("warm_up", warm_up, "stage", "acceptable_lag"))
